//! A line plot as SVG: a logarithmic axis of powers of ten to the right, a linear one from zero up.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
/// The plot's own area: left, right, top, bottom. The legend stands to its right.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 540.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 380.0;

/// A line.
#[derive(Debug, Clone)]
pub struct Line {
    /// What it is, in the legend.
    pub text: String,
    /// As in CSS.
    pub color: &'static str,
    /// Whether it is dashed.
    pub dashed: bool,
    /// Its points, x above 0.
    pub points: Vec<(f64, f64)>,
}

/// The plot.
pub fn plot(title: &str, x_text: &str, y_text: &str, lines: &[Line]) -> String {
    let axes = Axes::of(lines);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let middle = f64::midpoint(LEFT, RIGHT);
    text(&mut svg, (middle, 26.0), "middle", title);
    text(&mut svg, (middle, HEIGHT - 14.0), "middle", x_text);
    text(&mut svg, (LEFT - 40.0, TOP - 14.0), "start", y_text);
    axes.draw(&mut svg);
    for (number, line) in lines.iter().enumerate() {
        axes.draw_line(&mut svg, line);
        legend(&mut svg, number, line);
    }
    svg + "</svg>\n"
}

/// The numbers at the ends of the axes.
struct Axes {
    /// Powers of ten.
    x: (i32, i32),
    top: f64,
    step: f64,
}

impl Axes {
    fn of(lines: &[Line]) -> Self {
        let points = || lines.iter().flat_map(|line| &line.points);
        let low = points().map(|(x, _)| x.log10().floor() as i32).min();
        let high = points().map(|(x, _)| x.log10().ceil() as i32).max();
        let (low, high) = (low.unwrap_or(0), high.unwrap_or(1));
        let highest = points().map(|(_, y)| *y).fold(f64::MIN_POSITIVE, f64::max);
        let step = round_step(highest / 6.0);
        Self {
            x: (low, high.max(low + 1)),
            top: (highest / step).ceil() * step,
            step,
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (low, high) = (f64::from(self.x.0), f64::from(self.x.1));
        let right = LEFT + (x.log10() - low) / (high - low) * (RIGHT - LEFT);
        (right, BOTTOM - y / self.top * (BOTTOM - TOP))
    }

    fn draw(&self, svg: &mut String) {
        for power in self.x.0..=self.x.1 {
            let (x, _) = self.place((10_f64.powi(power), 0.0));
            stroke(svg, (x, TOP), (x, BOTTOM));
            text(
                svg,
                (x, BOTTOM + 20.0),
                "middle",
                &format!("10{}", superscript(power)),
            );
        }
        let steps = (self.top / self.step).round() as u32;
        for number in 0..=steps {
            let value = f64::from(number) * self.step;
            let (_, y) = self.place((10_f64.powi(self.x.0), value));
            stroke(svg, (LEFT, y), (RIGHT, y));
            let digits = if self.step < 1.0 { 1 } else { 0 };
            text(
                svg,
                (LEFT - 8.0, y + 4.0),
                "end",
                &format!("{value:.digits$}"),
            );
        }
    }

    fn draw_line(&self, svg: &mut String, line: &Line) {
        let places: Vec<_> = line.points.iter().map(|point| self.place(*point)).collect();
        let shown: Vec<_> = places
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let (points, style) = (shown.join(" "), style(line));
        let _ = writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" {style}/>");
        for (x, y) in places {
            let color = line.color;
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{color}\"/>"
            );
        }
    }
}

/// The next 1, 2 or 5 times a power of ten that is not below; at least 0.1.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.max(0.1).log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let fitting = factors.into_iter().find(|factor| factor * power >= step);
    fitting.unwrap_or(10.0) * power
}

fn style(line: &Line) -> String {
    let dashes = if line.dashed {
        " stroke-dasharray=\"6 4\""
    } else {
        ""
    };
    format!("stroke=\"{}\" stroke-width=\"2\"{dashes}", line.color)
}

fn legend(svg: &mut String, number: usize, line: &Line) {
    let (left, y) = (RIGHT + 16.0, TOP + 10.0 + 22.0 * number as f64);
    let (right, style) = (left + 30.0, style(line));
    let _ = writeln!(
        svg,
        "<line x1=\"{left}\" y1=\"{y}\" x2=\"{right}\" y2=\"{y}\" {style}/>"
    );
    text(svg, (right + 6.0, y + 4.0), "start", &line.text);
}

fn stroke(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#ccc\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

fn superscript(number: i32) -> String {
    let digit = |c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    };
    number.to_string().chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (step, expected) in [
            (0.13, 0.2),
            (0.7, 1.0),
            (1.0, 1.0),
            (3.1, 5.0),
            (70.0, 100.0),
        ] {
            assert!(
                (round_step(step) - expected).abs() < 1e-9,
                "{step}: {}",
                round_step(step)
            );
        }
    }

    #[test]
    fn points_stand_inside_their_axes() {
        let line = Line {
            text: "a < b".to_owned(),
            color: "red",
            dashed: true,
            points: vec![(1e5, 1.0), (1e7, 12.0)],
        };
        let axes = Axes::of(std::slice::from_ref(&line));
        assert_eq!(axes.place((1e5, 0.0)), (LEFT, BOTTOM));
        assert_eq!(axes.place((1e7, axes.top)), (RIGHT, TOP));
        let svg = plot("title", "x", "y", &[line]);
        assert!(svg.contains("a &lt; b") && svg.contains("10⁷"), "{svg}");
    }
}
