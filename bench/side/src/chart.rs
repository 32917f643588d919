//! Bar charts as SVG, without scripts and fonts, readable on a light and a dark background.

use std::fmt::{self, Write};

const LEFT: f64 = 250.0;
const WIDTH: f64 = 760.0;
const BAR: f64 = 18.0;
const STEP: f64 = 26.0;
const TOP: f64 = 40.0;

#[derive(Debug, Default)]
pub(crate) struct Chart {
    /// What the bars show, with the unit.
    pub(crate) title: String,
    pub(crate) bars: Vec<Bar>,
}

#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) value: f64,
    /// The text after the bar.
    pub(crate) text: String,
    pub(crate) ours: bool,
}

impl Chart {
    /// The file.
    pub(crate) fn svg(&self) -> Result<String, fmt::Error> {
        let height = TOP + STEP * self.bars.iter().map(|_| 1.0).sum::<f64>() + 8.0;
        let longest = self.bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
        // Room for the text behind the longest.
        let scale = (WIDTH - LEFT - 110.0) / longest;
        let mut out = String::new();
        writeln!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif" font-size="13">
<style>
text {{ fill: #24292f }} .title {{ font-weight: bold }} rect {{ fill: #8c959f }} .ours {{ fill: #0969da }}
@media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3 }} rect {{ fill: #6e7681 }} .ours {{ fill: #58a6ff }} }}
</style>
<text class="title" x="8" y="22">{}</text>"#,
            escaped(&self.title)
        )?;
        let mut top = TOP;
        for bar in &self.bars {
            let long = (bar.value * scale).max(1.0);
            let class = if bar.ours { r#" class="ours""# } else { "" };
            let middle = top + BAR - 4.5;
            writeln!(
                out,
                r#"<text x="{}" y="{middle}" text-anchor="end">{}</text><rect{class} x="{LEFT}" y="{top}" width="{long:.1}" height="{BAR}"/><text x="{:.1}" y="{middle}">{}</text>"#,
                LEFT - 8.0,
                escaped(&bar.label),
                LEFT + long + 6.0,
                escaped(&bar.text)
            )?;
            top += STEP;
        }
        out.push_str("</svg>\n");
        Ok(out)
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, value: f64, ours: bool) -> Bar {
        Bar { label: label.to_owned(), text: format!("{value}"), value, ours }
    }

    #[test]
    fn a_bar_is_as_long_as_its_value_says() -> Result<(), fmt::Error> {
        let chart = Chart {
            title: "a & b".to_owned(),
            bars: vec![bar("ours", 200.0, true), bar("<theirs>", 100.0, false)],
        };
        let svg = chart.svg()?;
        assert!(svg.contains(r#"<rect class="ours" x="250" y="40" width="400.0""#), "{svg}");
        assert!(svg.contains(r#"<rect x="250" y="66" width="200.0""#), "{svg}");
        assert!(svg.contains("a &amp; b") && svg.contains("&lt;theirs&gt;"), "{svg}");
        assert!(svg.contains("viewBox=\"0 0 760 100\"") && svg.ends_with("</svg>\n"), "{svg}");
        Ok(())
    }

    #[test]
    fn a_chart_without_bars_is_valid() -> Result<(), fmt::Error> {
        assert!(Chart::default().svg()?.starts_with("<svg"));
        Ok(())
    }
}
