/** The style of the reference page. */
export const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882 }
* { box-sizing: border-box }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 24rem minmax(0, 1fr) }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem; border-right: 1px solid var(--line); font-size: 13px }
nav ul { list-style: none; margin: 0; padding: 0 } nav a { display: block; text-decoration: none; padding: 1px 0; overflow-wrap: anywhere }
nav li a { display: flex; align-items: baseline } nav li .method { flex: 0 0 3rem; min-width: 0; font-size: 10px; opacity: .75 }
nav form { display: flex; gap: 4px; margin: .75rem 0 } nav input { flex: 1; min-width: 0; font: inherit; padding: 3px 6px }
main { padding: 1rem 2rem 4rem; max-width: 70rem }
section { border-top: 1px solid var(--line); padding: 1rem 0 }
h1, h2, h3, h4 { line-height: 1.2 } h3 { margin: 0 0 .5rem } h4 { margin: 1rem 0 .25rem }
code, pre { font: 13px/1.4 ui-monospace, monospace } code { background: var(--soft); padding: 0 3px; border-radius: 3px }
pre { background: var(--soft); padding: .75rem; overflow: auto; border-radius: 4px }
table { border-collapse: collapse; width: 100% } td { border: 1px solid var(--line); padding: 3px 8px; vertical-align: top }
td:first-child { width: 14rem; overflow-wrap: anywhere } b { color: #c33 }
.method { display: inline-block; min-width: 4.5rem; font-weight: 600 }
.deprecated { text-decoration: line-through } small { opacity: .75 }
@media (max-width: 60rem) { body { display: block } nav { position: static; height: auto; border: 0 } }
`
