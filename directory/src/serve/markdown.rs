//! Renders the Markdown subset of our own documents: headings, paragraphs, lists, tables, `code`,
//! **bold** and *emphasis*.

use maud::{Markup, html};

/// Renders one of our documents as HTML.
pub(super) fn render(text: &str) -> Markup {
    let blocks: Vec<&str> = text.split("\n\n").filter(|block| !block.trim().is_empty()).collect();
    html! { @for block in blocks { (render_block(block.trim_matches('\n'))) } }
}

fn render_block(block: &str) -> Markup {
    if let Some(heading) = block.strip_prefix("## ") {
        return html! { h2 { (inline(heading)) } };
    }
    if let Some(heading) = block.strip_prefix("# ") {
        return html! { h1 { (inline(heading)) } };
    }
    if block.starts_with('|') {
        return table(block);
    }
    if block.starts_with("- ") {
        let joined = block.replace("\n  ", " ");
        return html! { ul { @for item in joined.lines() { li { (inline(item.trim_start_matches("- "))) } } } };
    }
    html! { p { (inline(&block.replace('\n', " "))) } }
}

fn table(block: &str) -> Markup {
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_start_matches('|').trim_end_matches('|');
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut rows = block.lines().filter(|line| !line.starts_with("|---"));
    let head = rows.next().map(cells).unwrap_or_default();
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table" {
            table {
                thead { tr { @for cell in &head { th scope="col" { (inline(cell)) } } } }
                tbody { @for row in rows { tr { @for cell in cells(row) { td { (inline(&cell)) } } } } }
            }
        }
    }
}

/// Every second piece between marks is the marked one.
fn inline(text: &str) -> Markup {
    html! {
        @for (at, piece) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (piece) } } @else {
                @for (at, piece) in piece.split("**").enumerate() {
                    @if at % 2 == 1 { strong { (piece) } } @else {
                        @for (at, piece) in piece.split('*').enumerate() {
                            @if at % 2 == 1 { em { (piece) } } @else { (piece) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_marks_are_rendered_and_everything_is_escaped() {
        let page = render(
            "# A `b`\n\ntext **bold** *one*\nmore <script>\n\n- one\n  two\n- three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        );
        let page = page.into_string();
        for part in [
            "<h1>A <code>b</code></h1>",
            "<p>text <strong>bold</strong> <em>one</em> more &lt;script&gt;</p>",
            "<li>one two</li><li>three</li>",
            "<th scope=\"col\">a</th>",
            "<td>2</td>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
