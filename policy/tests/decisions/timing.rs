//! Measures the cost of a decision. Ignored by default: run with `--release -- --ignored
//! --nocapture` on a quiet machine.

use crate::scene::{caller, compile_over, tool};
use policy::{AccessRequest, Caller, Inventory, Policies, Risk, ServerInventory};
use std::time::Instant;

const SCHEMA: &str = r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string"},
    "limit":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}}}"#;

fn inventory(tools: usize) -> Inventory {
    let mut server = ServerInventory::builder("s");
    for number in 0..tools {
        server = server.tool(tool(&format!("t{number}"), Risk::Low, SCHEMA));
    }
    Inventory::new([server.build()])
}

fn text(policies: usize) -> String {
    let one = |number: usize| {
        format!(
            "@id(\"p{number}\") permit(principal in Group::\"g{number}\", action in Action::\"call\", resource) \
             when {{ resource.risk_rank <= 1 }};\n"
        )
    };
    (0..policies).map(one).collect()
}

fn nanoseconds(times: u32, mut work: impl FnMut()) -> u128 {
    let start = Instant::now();
    for _ in 0..times {
        work();
    }
    start.elapsed().as_nanos() / u128::from(times)
}

fn ask(policies: &Policies, caller: &Caller, input: &[u8]) -> bool {
    let request = AccessRequest::Call { server: "s", tool: "t7", input: Some(input) };
    policies.decide(caller, &request).is_permit()
}

#[test]
#[ignore = "a measurement"]
fn measure() {
    for count in [1, 10, 100] {
        let policies = compile_over(&text(count), &inventory(200));
        let callers: Vec<Caller> = (0..1_000)
            .map(|n| Caller::new(crate::scene::identity(&n.to_string(), &["g0"])))
            .collect();
        let mut all = callers.iter();
        let fresh = nanoseconds(1_000, || assert!(ask(&policies, all.next().unwrap(), b"{}")));
        let cached = nanoseconds(1_000_000, || assert!(ask(&policies, &callers[5], b"{}")));
        let list =
            nanoseconds(1_000_000, || assert!(policies.visible(&callers[5], "s").has_tool("t3")));
        let reading = text(count)
            + "@id(\"etc\") forbid(principal, action in Action::\"call\", resource) \
               when { context.input.path like \"/etc/*\" };";
        let start = Instant::now();
        let policies = compile_over(&reading, &inventory(200));
        let compiling = start.elapsed().as_micros();
        let input = br#"{"path":"/work/a","limit":5,"tags":["a","b"]}"#;
        let caller = caller(&["g0"]);
        let with_input = nanoseconds(2_000, || assert!(ask(&policies, &caller, input)));
        let mut all = callers.iter();
        let first_list = nanoseconds(100, || {
            assert!(policies.visible(all.next().unwrap(), "s").has_tool("t3"));
        });
        println!(
            "{count} policies, 200 tools: fresh {fresh} ns, cached {cached} ns, cached list {list} ns, \
             reading input {with_input} ns, first list {first_list} ns, compile {compiling} us"
        );
    }
}
