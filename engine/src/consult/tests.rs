use super::*;
use contract::time::Timestamp;
use gate::consult::{ModelOpinion, ModelSeverity};
use gate::network::ReasonClass;

fn folder() -> (tempfile::TempDir, NetworkFolder) {
    let home = tempfile::tempdir().unwrap();
    let folder = NetworkFolder::of(home.path());
    (home, folder)
}

fn answer(rationale: &str) -> Answer {
    Answer {
        opinion: ModelOpinion::LikelyHostile,
        severity: ModelSeverity::High,
        reason_class: ReasonClass::Injection,
        rationale: rationale.to_owned(),
    }
}

/// A server that changes constantly uses up only its own questions.
#[test]
fn one_server_cannot_keep_others_from_being_asked_about() {
    let (_home, folder) = folder();
    let settings = ConsultSettings {
        api: gate::consult::ChatApi::OpenAi,
        url: "http://127.0.0.1:1/v1".to_owned(),
        model: "m".to_owned(),
        key: String::from("k").into(),
        allow_private: true,
        budget: Budget { daily: 0, daily_per_server: 0 },
    };
    let consult = Consult::start(settings, folder).unwrap();
    let (loud, other): (ServerId, ServerId) = ("a".parse().unwrap(), "b".parse().unwrap());
    let id = contract::surface::EntryId::new(contract::surface::EntryType::Tool, "t");
    let after = Entry::from_raw(id, r#"{"name":"t","inputSchema":{}}"#).unwrap();
    let hashes = (0..MAX_FAILED as u64).map(|number| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        EntryHash::from_bytes(bytes)
    });
    lock(&consult.state.asked).insert(loud.clone(), hashes.collect());
    let change = Judgement { after: Some(after.clone()), ..unsettled() };
    let is_asked = |server: &ServerId| {
        assert_eq!(consult.of_server(server).read(&change), Err(Miss));
        lock(&consult.state.asked)[server].contains(&after.entry_hash())
    };
    assert!(!is_asked(&loud) && is_asked(&other));
}

#[test]
fn a_judge_that_is_held_has_no_opinion() {
    let held: &dyn Reader = &HeldJudge;
    assert_eq!(held.read(&unsettled()), Ok(Opinion::NotRun));
}

fn unsettled() -> Judgement {
    Judgement {
        id: contract::surface::EntryId::new(contract::surface::EntryType::Tool, "t"),
        verdict: gate::verdict::Verdict::Inconclusive,
        reason: None,
        is_deferred: false,
        is_by_the_call: false,
        is_accepted: false,
        before: None,
        after: None,
        findings: Vec::new(),
        not_inert: None,
        renamed_to: None,
        detail: None,
        climbed: None,
        advisory: None,
    }
}

#[test]
fn a_budget_is_shared_ends_at_its_limit_and_begins_again_the_next_day() {
    let (_home, folder) = folder();
    let budget = Budget { daily: 5, daily_per_server: 3 };
    let (one, other): (ServerId, ServerId) = ("a".parse().unwrap(), "b".parse().unwrap());
    let spend = |server: &ServerId, day: i64| {
        budget.spend(&folder, server, Timestamp(day * 86_400_000 + 5)).unwrap()
    };
    let asked = |server: &ServerId, day: i64| (0..9).filter(|_| spend(server, day)).count();
    assert_eq!(asked(&one, 1), 3, "at most three about one server");
    assert_eq!(asked(&other, 1), 2, "and five in all");
    assert_eq!(asked(&one, 2), 3);
    folder.write("consult-budget.json", b"{broken").unwrap();
    assert_eq!(asked(&one, 2), 3, "a file that cannot be read counts as none");
}

#[test]
fn opinions_are_kept_by_definition_and_model_and_read_as_strictly_as_they_came() {
    let (_home, folder) = folder();
    let (one, other) = (EntryHash::from_bytes([1; 32]), EntryHash::from_bytes([2; 32]));
    Opinions::add(&folder, one, "m-1", &answer("a\u{1b}[2J \"quoted\""), Timestamp(7));
    let kept = Opinions::read(&folder);
    let found = kept.get(one, "m-1").unwrap();
    assert_eq!(found.answer, answer("a\u{1b}[2J \"quoted\""));
    assert_eq!(kept.newest(one), Some(found));
    assert!(kept.get(one, "m-2").is_none() && kept.newest(other).is_none());
    let text = String::from_utf8(folder.read("opinions.json").unwrap()).unwrap();
    folder.write("opinions.json", text.replace("LIKELY_HOSTILE", "PROCEED").as_bytes()).unwrap();
    assert!(Opinions::read(&folder).newest(one).is_none());
}

#[test]
fn only_so_many_opinions_are_kept() {
    let (_home, folder) = folder();
    let mut all = Vec::new();
    for number in 0..1_005_u32 {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        all.push(EntryHash::from_bytes(bytes));
    }
    // All at once, because a thousand separate writes would take long.
    let lines: Vec<serde_json::Value> = all[..1_000]
        .iter()
        .map(|hash| {
            let said = serde_json::json!({"opinion": "ABSTAIN", "severity": "none", "reason_class": "", "rationale": ""});
            serde_json::json!({"entry_hash": hash, "model": "m", "at": 1, "answer": said.to_string()})
        })
        .collect();
    folder.write("opinions.json", &serde_json::to_vec(&lines).unwrap()).unwrap();
    for hash in &all[1_000..] {
        Opinions::add(&folder, *hash, "m", &answer(""), Timestamp(2));
    }
    let kept = Opinions::read(&folder);
    assert!(kept.newest(all[4]).is_none(), "the oldest are forgotten");
    assert!(kept.newest(all[5]).is_some() && kept.newest(all[1_004]).is_some());
}
