//! What the keeper does after a list was fetched: it has the server judged, and resumes what waited
//! for the list.

use super::{Command, Glance, Keeper, Listed};
use crate::reason::ReasonCode;
use contract::surface::ListKind;
use std::time::Instant;
use wire::listing::ListOutcome;

/// What to do once the server was judged.
#[derive(Debug, Default)]
pub(super) struct Judging {
    /// Lists that were fetched, and when they were requested.
    finished: Vec<(ListKind, Instant)>,
    /// It was judged because of an admission check.
    is_for_check: bool,
}

impl Keeper {
    pub(super) fn finish(
        &mut self,
        list: ListKind,
        outcome: ListOutcome,
        glance: &Glance,
        now: Instant,
        out: &mut Vec<Command>,
    ) {
        let begun = self.listings.remove(&list).map_or(now, |open| open.begun);
        self.finished.push((list, begun));
        self.keep(list, outcome, out);
        self.finish_all(glance, now, out);
    }

    /// Handles a list that could not be fetched. Nothing new is known, so nothing is judged because
    /// of it.
    pub(super) fn fail(
        &mut self,
        list: ListKind,
        reason: ReasonCode,
        glance: &Glance,
        out: &mut Vec<Command>,
    ) {
        self.listings.remove(&list);
        self.failed.insert(list, reason);
        self.finish_all(glance, self.told_at, out);
    }

    /// Whether the server's answer is known for every list.
    fn has_all_lists(&self, glance: &Glance) -> bool {
        ListKind::ALL.iter().all(|list| self.is_known(*list, glance))
    }

    /// Judges new lists, and resumes the requests that waited. The first time no list may be
    /// missing, since a server is judged as a whole; later, a missing list does not delay the
    /// others.
    pub(super) fn finish_all(&mut self, glance: &Glance, now: Instant, out: &mut Vec<Command>) {
        let is_out = |list: &ListKind| {
            let is_asked = self.listings.contains_key(list);
            !self.is_known(*list, glance) && (is_asked || glance.fetched_by_others.contains(list))
        };
        let is_idle = self.finished.is_empty() && self.failed.is_empty();
        if is_idle || ListKind::ALL.iter().any(is_out) {
            return;
        }
        self.close_unanswered(glance, now, out);
        self.refuse_failed(glance, out);
        if !self.finished.is_empty() {
            let finished = std::mem::take(&mut self.finished);
            self.judge(out).finished.extend(finished);
        }
    }

    /// Has the server judged.
    fn judge(&mut self, out: &mut Vec<Command>) -> &mut Judging {
        if self.judging.is_none() {
            let is_news = std::mem::take(&mut self.has_news);
            out.push(Command::Judge { is_news });
        }
        self.judging.get_or_insert_default()
    }

    pub(super) fn judge_for_check(&mut self, glance: &Glance, out: &mut Vec<Command>) -> bool {
        let has_all = self.has_all_lists(glance);
        if has_all {
            self.judge(out).is_for_check = true;
        }
        has_all
    }

    pub(super) fn judged(&mut self, is_reliable: bool, glance: &Glance, out: &mut Vec<Command>) {
        let Some(Judging { finished, is_for_check }) = self.judging.take() else { return };
        let listed = |(list, begun): (ListKind, Instant)| {
            let ttl = self.outcome(list, glance).and_then(ListOutcome::ttl);
            Listed { list, begun, ttl }
        };
        let lists: Vec<Listed> = finished.into_iter().map(listed).collect();
        self.has_news |= !is_reliable;
        if !lists.is_empty() {
            out.push(Command::EndListing { lists, is_reliable });
        }
        match (is_for_check, is_reliable) {
            (false, _) => {}
            (true, false) => out.push(Command::RefuseUnadmitted),
            (true, true) => self.go_on_after_check(glance, out),
        }
    }

    /// Handles a server that answers some lists but never a certain one: that list is treated as
    /// unreadable, so that the others stay usable.
    fn close_unanswered(&mut self, glance: &Glance, now: Instant, out: &mut Vec<Command>) {
        let is_answer = |outcome: &ListOutcome| !matches!(outcome, ListOutcome::NotOffered);
        let known = ListKind::ALL.into_iter().filter_map(|list| self.outcome(list, glance));
        if !known.into_iter().any(is_answer) {
            return;
        }
        let failed = self.failed.keys().copied();
        let unanswered: Vec<ListKind> =
            failed.filter(|list| !self.is_known(*list, glance)).collect();
        for list in unanswered {
            self.failed.remove(&list);
            self.finished.push((list, now));
            let words = "not answered, though the server answers other lists";
            self.keep(list, ListOutcome::Unreadable(words.to_owned()), out);
        }
    }

    /// Refuses what waited for lists that could not be fetched. They stay stale, so the next call
    /// requests them again and no call is dispatched on the old ones. While a list is completely
    /// unknown, the lists fetched with it cannot be judged either.
    fn refuse_failed(&mut self, glance: &Glance, out: &mut Vec<Command>) {
        if !self.has_all_lists(glance) {
            let reason = self.failed.values().next().copied();
            let reason = reason.unwrap_or(ReasonCode::UpstreamUnreachable);
            for (list, _) in self.finished.drain(..) {
                self.failed.entry(list).or_insert(reason);
            }
        }
        let failed = std::mem::take(&mut self.failed).into_iter();
        out.extend(failed.map(|(list, reason)| Command::FailListing { list, reason }));
    }
}
