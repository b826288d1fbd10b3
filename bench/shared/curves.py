"""Panels of curves as SVG, side by side: what the scripts that draw figures of the documents share."""

import math

WIDTH, HEIGHT, LEFT, TOP = 400, 230, 62, 30
PANEL_WIDTH, PANEL_HEIGHT = WIDTH + LEFT + 20, HEIGHT + TOP + 46


class Logarithmic:
    """Decades, and where a value is among them."""

    def __init__(self, values, length):
        self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        self.length = length

    def place(self, value):
        return (math.log10(value) - self.low) / (self.high - self.low) * self.length

    def marks(self):
        return [10.0**power for power in range(self.low, self.high + 1)]


class Linear:
    """Some five round numbers."""

    def __init__(self, values, length):
        step = 10.0 ** math.floor(math.log10((max(values) - min(values)) / 2))
        while (max(values) - min(values)) / step > 7:
            step *= 2.5 if str(step).strip("0.").startswith("2") else 2
        self.low, self.high = math.floor(min(values) / step), math.ceil(max(values) / step)
        self.step, self.length = step, length

    def place(self, value):
        return (value / self.step - self.low) / (self.high - self.low) * self.length

    def marks(self):
        return [self.step * i for i in range(self.low, self.high + 1)]


def label(value):
    return f"{value:g}" if value == 0 or 1e-3 < abs(value) < 1e5 else (
        f"10<tspan dy='-4' font-size='8'>{round(math.log10(value))}</tspan>")


def panel(title, curves, x, y, scales=(Logarithmic, Logarithmic), legend=(WIDTH - 125, 16), columns=1):
    """`curves`: (name, colour, points) each; `x` and `y`: the names of the axes; `legend`: where it begins; its `columns` have a
    third of the width each."""
    across = scales[0]([point[0] for _, _, points in curves for point in points], WIDTH)
    up = scales[1]([point[1] for _, _, points in curves for point in points], HEIGHT)
    parts = [f"<text x='{LEFT}' y='{TOP - 12}' font-weight='bold'>{title}</text>"]
    for value in across.marks():
        at = LEFT + across.place(value)
        parts.append(f"<line x1='{at:.1f}' x2='{at:.1f}' y1='{TOP}' y2='{TOP + HEIGHT}' stroke='#ddd'/>"
                     f"<text x='{at:.1f}' y='{TOP + HEIGHT + 15}' text-anchor='middle'>{label(value)}</text>")
    for value in up.marks():
        at = TOP + HEIGHT - up.place(value)
        parts.append(f"<line x1='{LEFT}' x2='{LEFT + WIDTH}' y1='{at:.1f}' y2='{at:.1f}' stroke='#ddd'/>"
                     f"<text x='{LEFT - 5}' y='{at + 4:.1f}' text-anchor='end'>{label(value)}</text>")
    parts.append(f"<rect x='{LEFT}' y='{TOP}' width='{WIDTH}' height='{HEIGHT}' fill='none' stroke='#888'/>"
                 f"<text x='{LEFT + WIDTH / 2}' y='{TOP + HEIGHT + 32}' text-anchor='middle'>{x}</text>"
                 f"<text transform='translate(14 {TOP + HEIGHT / 2}) rotate(-90)' text-anchor='middle'>{y}</text>")
    for place, (name, colour, points) in enumerate(curves):
        row, column = divmod(place, columns)
        line = " ".join(f"{LEFT + across.place(px):.1f},{TOP + HEIGHT - up.place(py):.1f}" for px, py in points)
        begin, at = LEFT + legend[0] + column * WIDTH / 3, TOP + legend[1] + 14 * row
        parts.append(f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='1.5'/>"
                     f"<line x1='{begin}' x2='{begin + 20}' y1='{at - 4}' y2='{at - 4}' stroke='{colour}' "
                     f"stroke-width='2'/><text x='{begin + 25}' y='{at}'>{name}</text>")
    return parts


def draw(panels):
    """Panels, two in a row, as the text of an SVG file."""
    parts = []
    for i, each in enumerate(panels):
        parts.append(f"<g transform='translate({i % 2 * PANEL_WIDTH} {i // 2 * PANEL_HEIGHT})'>")
        parts += each
        parts.append("</g>")
    size = f"{2 * PANEL_WIDTH} {(len(panels) + 1) // 2 * PANEL_HEIGHT}"
    return "\n".join([f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {size}' font-family='sans-serif' font-size='11'>",
                      "<rect width='100%' height='100%' fill='white'/>", *parts, "</svg>"]) + "\n"
