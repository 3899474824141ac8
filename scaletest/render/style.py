"""Colours and style of charts, as CSS: light or dark as the reader's system is set, light on paper.

People who cannot distinguish red and green can distinguish these colours (Okabe and Ito 2008), and
nothing is expressed by colour alone.
"""

import re

_LIGHT = """
--paper:#ffffff;--panel:#f6f8fa;--ink:#1b2128;--soft:#57616d;--grid:#e2e6eb;--edge:#c8cfd7;
--data:#0068a8;--law:#c2410c;--ideal:#7b8794;--shade:#8794a333;--band:#0068a824;--mark:#a3195b;
--pass:#0a6b3d;--fail:#b42318;--invalid:#8a5a00;--pass-back:#e4f5ec;--fail-back:#fdebe9;--invalid-back:#fdf3dc;
"""
_DARK = """
--paper:#12161b;--panel:#1b2129;--ink:#e8ecf1;--soft:#a3adb9;--grid:#2a323c;--edge:#3d4752;
--data:#5db5ef;--law:#f59e5b;--ideal:#8d98a5;--shade:#97a3b02e;--band:#5db5ef2e;--mark:#f08bbb;
--pass:#6ee7a8;--fail:#ff8f85;--invalid:#f2c14e;--pass-back:#10301f;--fail-back:#3a1512;--invalid-back:#33270a;
"""
CHART = """
.chart{display:block;width:100%;height:auto;
font:12px/1 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.spark{display:inline-block;width:7em;height:1.4em;vertical-align:middle;overflow:visible}
.c-spark{stroke:var(--data);stroke-width:1.6;fill:none;stroke-linejoin:round;stroke-linecap:round;
vector-effect:non-scaling-stroke}
.spark .c-ideal{stroke-width:1.2;stroke-dasharray:3 2;vector-effect:non-scaling-stroke}
.c-grid{stroke:var(--grid);fill:none}
.c-axis{stroke:var(--edge);fill:none}
.c-tick,.c-label{fill:var(--soft)}
.c-data{stroke:var(--data);stroke-width:2;fill:none;stroke-linejoin:round}
.c-dot{fill:var(--data);stroke:var(--paper);stroke-width:1.5}
.c-error{stroke:var(--data);stroke-width:1.8;fill:none}
.c-law{stroke:var(--law);stroke-width:2.2;fill:none}
.c-beyond{stroke:var(--law);stroke-width:2.2;fill:none;stroke-dasharray:2 5;stroke-linecap:round}
.c-ideal{stroke:var(--ideal);stroke-width:1.6;fill:none;stroke-dasharray:7 5}
.c-wanted{stroke:var(--mark);stroke-width:1.6;fill:none;stroke-dasharray:3 3}
.c-fail{stroke:var(--fail);stroke-width:2;fill:none;stroke-linejoin:round}
.c-shade{fill:var(--shade)}
.c-foreign{fill:var(--mark);fill-opacity:.22}
.c-band{fill:var(--band)}
.c-bar{fill:var(--data);fill-opacity:.82}
.c-mark{stroke:var(--mark);stroke-width:1.8;fill:none}
.c-mean{stroke:var(--data);stroke-width:1.2;stroke-dasharray:4 4;fill:none}
.c-faint{fill:var(--data);fill-opacity:.45}
.c-hollow{fill:var(--paper);stroke:var(--data);stroke-width:2}
.c-hollow-next{fill:var(--paper);stroke:var(--law);stroke-width:2}
.c-run-0{stroke:var(--data)}
.c-run-1{stroke:var(--law);stroke-dasharray:9 4}
.c-run-2{stroke:var(--pass);stroke-dasharray:3 3}
.c-run-3{stroke:var(--mark);stroke-dasharray:9 3 2 3}
.c-run-4{stroke:var(--invalid);stroke-dasharray:14 5}
.c-run-5{stroke:var(--soft);stroke-dasharray:1 4}
.c-run-dot-0{fill:var(--data)}
.c-run-dot-1{fill:var(--law)}
.c-run-dot-2{fill:var(--pass)}
.c-run-dot-3{fill:var(--mark)}
.c-run-dot-4{fill:var(--invalid)}
.c-run-dot-5{fill:var(--soft)}
.c-run{fill:none;stroke-width:2;stroke-linejoin:round}
.c-run-error{fill:none;stroke-width:1.4;stroke-dasharray:none}
.c-run-dot{stroke:var(--paper);stroke-width:1.5}
.c-dots{stroke:var(--data);stroke-width:4;stroke-opacity:.6;stroke-linecap:round;fill:none}
.c-phase-0{fill:#0072b2}
.c-phase-1{fill:#56b4e9}
.c-phase-2{fill:#cc79a7}
.c-phase-3{fill:#e69f00}
.c-phase-4{fill:#7b4bb0}
.c-phase-5{fill:#009e73}
.c-phase-6{fill:#a8b2bd}
.c-time-on_cpu{fill:#0072b2}
.c-time-cpu_wait{fill:#e69f00}
.c-time-throttled{fill:#d55e00}
.c-time-disk{fill:#009e73}
.c-time-memory{fill:#f0e442}
.c-time-device{fill:#cc79a7}
.c-time-file_lock{fill:#a3195b}
.c-time-network{fill:#56b4e9}
.c-time-lock{fill:#7b4bb0}
.c-time-pipe{fill:#8c6d31}
.c-time-sleep{fill:#a8b2bd}
.c-time-child{fill:#6b7a3a}
.c-time-idle{fill:#cdd4dc}
.c-time-not_observed{fill:var(--paper);stroke:var(--soft);stroke-dasharray:3 3}
.c-time-gap{fill:var(--paper);stroke:var(--ink)}
.c-time-other{fill:var(--grid)}
@media print{
.c-shade,.c-foreign,.c-band,.c-bar,[class^=c-time],[class^=c-phase],.chart{-webkit-print-color-adjust:exact;print-color-adjust:exact}
}
""".replace("\n", "")
# What reports and the pages of all programs have in common.
COMMON = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.site{display:flex;flex-wrap:wrap;gap:.125rem .25rem;align-items:center;margin:0 0 .75rem;
padding:0 0 .375rem;border-bottom:1px solid var(--edge)}
.site a{padding:.35rem .6rem;border-radius:6px;color:var(--ink);text-decoration:none}
.site a:hover{text-decoration:underline}
.site a[aria-current]{background:var(--panel);font-weight:600;
box-shadow:inset 0 0 0 1px var(--edge)}
.site .brand{padding-left:0;margin-right:.75rem;font-size:1.125rem;font-weight:700}
.brand svg{width:1.25rem;height:1.25rem;margin-right:.5rem;vertical-align:-.2rem}
.brand rect{fill:var(--data)}
.brand path{fill:none;stroke:var(--paper);stroke-width:1.8;
stroke-linecap:round;stroke-linejoin:round}
@media (max-width:40rem){.site{gap:0}.site .brand{flex-basis:100%}.site a{padding:.3rem .4rem}}
@media print{.site{display:none}}
h1{margin:0;font-size:1.5rem;line-height:1.25;overflow-wrap:anywhere}
h2{margin:1.75rem 0 .5rem;font-size:1.125rem}
h3{margin:0;font-size:1rem}
a{color:var(--data)}
:focus-visible{outline:3px solid var(--data);outline-offset:2px;border-radius:4px}
.soft,figcaption{color:var(--soft);font-size:.875rem}
figure{margin:0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;white-space:nowrap;border-bottom:1px solid var(--edge)}
thead th{color:var(--soft);font-size:.875rem;font-weight:600}
tbody tr:last-child>*{border-bottom:0}
pre{margin:.5rem 0;padding:.75rem 1rem;background:var(--panel);border:1px solid var(--edge);
border-radius:8px;overflow-x:auto;font:.875rem/1.5 ui-monospace,Menlo,Consolas,monospace}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));
gap:.75rem;margin:1rem 0 0}
.tiles>div{padding:.6rem .9rem;background:var(--panel);
border:1px solid var(--edge);border-radius:8px}
.tiles dt{color:var(--soft);font-size:.875rem}
.tiles dd{margin:0;font-size:1.6rem;line-height:1.3;
font-weight:600;font-variant-numeric:tabular-nums}
.tiles .bad dd{color:var(--fail)}
@media (max-width:640px){.tiles{grid-template-columns:repeat(2,1fr)}}
""".replace("\n", "")
PALETTE = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
@media print{{:root{{color-scheme:light;{_LIGHT}}}}}
""".replace("\n", "")
STYLE = PALETTE + CHART + COMMON


def chart_properties(css: str) -> dict[str, str]:
    """Return the properties of these classes of charts on light paper, to draw without CSS."""
    colours = dict(re.findall(r"--([\w-]+):(#\w+)", _LIGHT))
    merged: dict[str, str] = {}
    for name in css.split():
        for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", CHART):
            if f".{name}" in selectors.strip().split(","):
                merged |= dict(part.split(":", 1) for part in body.split(";"))
    return {
        name: re.sub(r"var\(--([\w-]+)\)", lambda match: colours[match[1]], text)
        for name, text in merged.items()
    }
