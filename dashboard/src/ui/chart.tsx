/** A chart over time, and the same numbers as a table for those who cannot see it. */
import { useEffect, useRef } from "preact/hooks"
import uPlot from "uplot"
import "uplot/dist/uPlot.min.css"
import { clockTime, localTime, number } from "../format.ts"
import { theme } from "../theme.ts"

export type SeriesColor = "accent" | "good" | "warn" | "bad" | "faint"

export interface Series {
  readonly title: string
  readonly color: SeriesColor
  /** Null leaves a gap. */
  readonly values: readonly (number | null)[]
}

interface ChartProps {
  readonly label: string
  /** Milliseconds since 1970, ascending. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly unit?: string
  readonly kind?: "lines" | "bars"
  readonly small?: boolean
}

export function Chart({ label, times, series, unit = "", kind = "lines", small = false }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const shape = `${theme.value} ${kind} ${unit} ${series.map(({ title, color }) => title + color).join()}`
  useEffect(() => {
    const element = frame.current!
    const made = new uPlot(options(element, series, unit, kind), dataOf(times, series), element)
    plot.current = made
    const resizes = new ResizeObserver(() => made.setSize(sizeOf(element)))
    resizes.observe(element)
    return () => {
      resizes.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [shape])
  useEffect(() => plot.current?.setData(dataOf(times, series)), [times, series])
  const show = (value: number | null | undefined) =>
    value === null || value === undefined ? "–" : `${number(value)}${unit === "" ? "" : ` ${unit}`}`
  return (
    <figure class="chart-figure">
      <ul class="legend" aria-hidden="true">
        {series.map(({ title, color, values }) => (
          <li key={title}>
            <span class={`line ${color}`} />
            {title} <strong>{show(values.at(-1))}</strong>
          </li>
        ))}
      </ul>
      <div ref={frame} class={`chart ${small ? "small" : ""}`} aria-hidden="true" />
      <div class="visually-hidden">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {series.map(({ title }) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {lastOf(times).map((i) => (
              <tr key={times[i]}>
                <th scope="row">{localTime(times[i]!)}</th>
                {series.map(({ title, values }) => (
                  <td key={title}>{show(values[i])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  )
}

/** The table shows at most the newest 24 points. */
function lastOf(times: readonly number[]): number[] {
  return [...times.keys()].slice(-24)
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [times.map((at) => at / 1000), ...series.map(({ values }) => [...values])] as uPlot.AlignedData
}

const sizeOf = (element: Element) => ({
  width: Math.max(120, element.clientWidth),
  height: element.clientHeight,
})

function options(
  element: Element,
  series: readonly Series[],
  unit: string,
  kind: "lines" | "bars",
): uPlot.Options {
  const style = getComputedStyle(element)
  const color = (name: string) => toRgb(element, style.getPropertyValue(`--${name}`))
  const [faint, line] = [color("faint"), color("line")]
  const axis = { stroke: faint, grid: { stroke: line, width: 1 }, ticks: { show: false } }
  return {
    ...sizeOf(element),
    legend: { show: false },
    cursor: { points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [
      {
        ...axis,
        space: 90,
        size: 28,
        values: (_plot, at) => minutes(at),
      },
      { ...axis, size: 52, values: (_plot, at) => at.map((one) => `${number(one)}${unit && ` ${unit}`}`) },
    ],
    series: [
      {},
      ...series.map((one) => ({
        label: one.title,
        stroke: color(one.color),
        width: 2,
        points: { show: true, size: 5, filter: ({ data }: uPlot, index: number) => alone(data[index]!) },
        ...(kind === "bars" ? { paths: uPlot.paths.bars!({ size: [0.7, 40] }), fill: color(one.color) } : {}),
      })),
    ],
  }
}

/** A line needs two values side by side: one between gaps is drawn as a point. */
function alone(values: uPlot.AlignedData[number]): number[] {
  const isGap = (i: number) => (values[i] ?? null) === null
  return [...values.keys()].filter((i) => !isGap(i) && isGap(i - 1) && isGap(i + 1))
}

/** Each minute once: the seconds would not fit. */
function minutes(at: readonly number[]): string[] {
  const texts = at.map((one) => clockTime(one * 1000).replace(/:\d\d(?=\s|$)/, ""))
  return texts.map((text, i) => (text === texts[i - 1] ? "" : text))
}

/** The canvas does not know light-dark(). */
function toRgb(element: Element, value: string): string {
  const probe = document.createElement("span")
  probe.style.color = value
  element.append(probe)
  const found = getComputedStyle(probe).color
  probe.remove()
  return found
}
