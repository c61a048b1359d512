//! The HTML around the data.

use serde::Serialize;

const SHELL: &str = include_str!("page/shell.html");
const HTML: &str = include_str!("page/page.html");
const STYLES: &str = include_str!("page/style.css");

/// The scripts; each uses only earlier ones.
const SCRIPTS: [&str; 20] = [
    include_str!("page/format.js"),
    include_str!("page/elements.js"),
    include_str!("page/packed.js"),
    include_str!("page/schedule.js"),
    include_str!("page/network.js"),
    include_str!("page/layout.js"),
    include_str!("page/pen.js"),
    include_str!("page/drawing.js"),
    include_str!("page/legend.js"),
    include_str!("page/view.js"),
    include_str!("page/journey.js"),
    include_str!("page/take.js"),
    include_str!("page/timeline.js"),
    include_str!("page/stage.js"),
    include_str!("page/player.js"),
    include_str!("page/heat.js"),
    include_str!("page/chart.js"),
    include_str!("page/tables.js"),
    include_str!("page/demand.js"),
    include_str!("page/main.js"),
];

/// One self-contained HTML file.
pub(crate) fn page(title: &str, data: &impl Serialize) -> String {
    // In JSON, `<` occurs only in strings. Escaped, it cannot end the enclosing element.
    let data =
        serde_json::to_string(data).expect("bug: data cannot be written").replace('<', "\\u003c");
    let body = filled(HTML, [("{{data}}", data), ("{{scripts}}", SCRIPTS.concat())]);
    whole(title, "script-src 'unsafe-inline'; img-src data:; ", body)
}

/// A page that may use what the policy says, besides its styles.
pub(crate) fn whole(title: &str, policy: &str, body: String) -> String {
    let parts = [
        ("{{policy}}", policy.to_owned()),
        ("{{title}}", escaped(title)),
        ("{{styles}}", STYLES.to_owned()),
        ("{{body}}", body),
    ];
    filled(SHELL, parts)
}

/// The HTML with texts in the places of placeholders. Each occurs once, in this order; inserted text is not searched.
pub(crate) fn filled<const N: usize>(html: &str, parts: [(&str, String); N]) -> String {
    let mut out = String::new();
    let mut rest = html;
    for (place, text) in parts {
        let (before, after) = rest.split_once(place).expect("bug: a missing placeholder");
        out += before;
        out += &text;
        rest = after;
    }
    out + rest
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_can_leave_its_place() {
        let evil = "</title></script><script>alert(1)</script>{{data}}{{scripts}}";
        let page = page(evil, &[evil]);
        assert!(!page.contains("alert(1)</script>") && !page.contains("<script>alert"));
        assert_eq!(page.matches("</script>").count(), HTML.matches("</script>").count());
    }

    #[test]
    fn the_page_names_nothing_outside() {
        let page = page("a machine", &[0]);
        for outside in
            ["http://", "https://", "//cdn", "@import", "fetch(", "XMLHttp", "src=", "innerHTML"]
        {
            assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
        }
    }
}
