//! One string: as it stands, folded, and what is encoded in it.

use super::commands::is_command;
use super::encoded::decode_runs;
use super::excerpt::excerpt;
use super::fold::{changes_words, fold_into, original_offsets};
use super::foreign::OwnNames;
use super::hidden::{Glance, find_hidden};
use super::lexicon::Lexicon;
use super::quiet::QuietTexts;
use super::words::{Hit, Matcher};
use super::{MarkerClass, Place};

/// What was found in a string.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) class: MarkerClass,
    pub(super) rule: &'static str,
    pub(super) excerpt: String,
}

/// Scans strings one after the other. It keeps one buffer for the folded form of the present string, and some short texts.
#[derive(Debug)]
pub(super) struct TextScanner {
    matcher: Matcher,
    folded: Vec<u8>,
    quiet: QuietTexts,
}

impl TextScanner {
    pub(super) fn new(quiet: QuietTexts) -> Self {
        TextScanner { matcher: Matcher::new(Lexicon::built_in()), folded: Vec::new(), quiet }
    }

    /// What is found in a string.
    #[inline(always)]
    pub(super) fn scan(
        &mut self,
        text: &str,
        place: Place,
        own: &mut OwnNames<'_>,
    ) -> Vec<Finding> {
        let Err(place_in_quiet) = self.quiet.find(text.as_bytes()) else { return Vec::new() };
        let (findings, is_unconditional) = match self.matcher.is_plain_word(text) {
            true => (Vec::new(), true),
            false => {
                let findings = self.scan_text(text, place, own);
                (findings, !self.matcher.is_conditional())
            }
        };
        if findings.is_empty()
            && is_unconditional
            && let Some(place) = place_in_quiet
        {
            self.quiet.remember(text.as_bytes(), place);
        }
        findings
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn scan_text(&mut self, text: &str, place: Place, own: &mut OwnNames<'_>) -> Vec<Finding> {
        self.matcher.begin(place);
        let hits = self.matcher.find(text.as_bytes(), own);
        let glance = Glance::of(self.matcher.traits());
        let mut findings: Vec<Finding> = find_hidden(text, glance)
            .into_iter()
            .map(|found| Finding {
                class: MarkerClass::HiddenCharacters,
                rule: found.rule,
                excerpt: excerpt(text, found.start, found.end),
            })
            .collect();
        push_findings(self.matcher.lexicon(), text, hits, &mut findings);
        // Where folding changes no word, a phrase that is not in the text is not in the folded one. One that is there may be
        // talked about in the one and, with other distances, not in the other.
        if !glance.is_plain
            && !text.is_ascii()
            && (self.matcher.has_completed() || changes_words(text))
        {
            folded_phrases(&mut self.matcher, &mut self.folded, text, own, &mut findings);
        }
        let folded = &mut self.folded;
        let matcher = &mut self.matcher;
        let mut has_command = false;
        decode_runs(text.as_bytes(), |decoded| {
            if !has_command && is_command(decoded) {
                has_command = true;
                let decoded = String::from_utf8_lossy(decoded);
                findings.push(Finding {
                    class: MarkerClass::DecodedCommand,
                    rule: "decoded.command",
                    excerpt: excerpt(&decoded, 0, decoded.len()),
                });
            }
            let hits = matcher.find(decoded, own);
            if !hits.is_empty() {
                let text = String::from_utf8_lossy(decoded);
                push_findings(matcher.lexicon(), &text, hits, &mut findings);
            }
            if !decoded.is_ascii()
                && let Ok(text) = std::str::from_utf8(decoded)
            {
                folded_phrases(matcher, folded, text, own, &mut findings);
            }
        });
        findings
    }
}

fn folded_phrases(
    matcher: &mut Matcher,
    folded: &mut Vec<u8>,
    text: &str,
    own: &mut OwnNames<'_>,
    findings: &mut Vec<Finding>,
) {
    fold_into(text, folded);
    let mut hits = matcher.find(folded, own);
    if hits.is_empty() {
        return;
    }
    // Excerpts show the text as it stands, so the places are translated back.
    let mut offsets: Vec<usize> = hits.iter().flat_map(|hit| [hit.start, hit.end]).collect();
    offsets.sort_unstable();
    let originals = original_offsets(text, &offsets);
    let original = |offset: usize| {
        let at = offsets.partition_point(|&other| other < offset);
        originals.get(at).copied().unwrap_or(0)
    };
    for hit in &mut hits {
        *hit = Hit { rule: hit.rule, start: original(hit.start), end: original(hit.end) };
    }
    push_findings(matcher.lexicon(), text, hits, findings);
}

fn push_findings(
    lexicon: &'static Lexicon,
    text: &str,
    hits: Vec<Hit>,
    findings: &mut Vec<Finding>,
) {
    findings.extend(hits.into_iter().filter_map(|hit| {
        let rule = lexicon.rules.get(usize::from(hit.rule))?;
        Some(Finding {
            class: rule.class,
            rule: rule.id,
            excerpt: excerpt(text, hit.start, hit.end),
        })
    }));
}
