// A picture that is read as a whole: its frame, its axes and a name for those who cannot see it.
//
// Drawn by hand on d3's scales and shapes, as SVG. uPlot and ECharts draw on a canvas, where no
// marker can have the focus or a name; Observable Plot brings most of d3, several times this bundle.
import type { ComponentChildren } from "preact";
import { Axes, type Axis, type Frame, type Scale } from "./axes";

interface PlotProps {
  frame: Frame;
  x: Scale;
  y: Scale;
  xAxis: Axis;
  yAxis: Axis;
  says: string;
  children: ComponentChildren;
}

/** What is drawn inside the axes. */
export function Plot({ frame, says, children, ...axes }: PlotProps) {
  return (
    <svg viewBox={`0 0 ${frame.width} ${frame.height}`} class="plot" role="img" aria-label={says}>
      <Axes frame={frame} {...axes} />
      {children}
    </svg>
  );
}
