import { describe, expect, test } from "vitest";
import { createMetricsEndpoint, type MetricFamily, Metrics } from "../../src/metrics/index.ts";
import { formatPrometheus } from "../../src/metrics/metrics-endpoint.ts";
import { askEndpoint } from "../../../testing/src/gateway/ask-endpoint.ts";

// oxfmt-ignore
const families: readonly MetricFamily[] = [
  { name: "http.server.request.duration", unit: "s", description: "How long", kind: "histogram", bounds: [0.5, 1],
    points: [{ attributes: { "http.route": '/a\\"\n', "http.response.status_code": 204 }, counts: [2, 0, 1],
      sum: 7.5 }] },
  { name: "a.refusals", unit: "{request}", description: "How many", kind: "counter",
    points: [{ attributes: {}, value: 3 }] },
  { name: "a.backlog", unit: "By", description: "How much", kind: "gauge", points: [{ attributes: {}, value: 9 }] },
  { name: "a.size", unit: "", description: "How large", kind: "histogram", bounds: [1],
    points: [{ attributes: {}, counts: [1, 0], sum: 1 }] },
  { name: "a.cpu-time", unit: "s", description: "How busy", kind: "counter",
    points: [{ attributes: { mode: "user" }, value: 0.5 }, { attributes: { mode: "system" }, value: 0 }] },
  { name: "a.share", unit: "1", description: "Which part", kind: "gauge", points: [{ attributes: {}, value: 0.25 }] },
  { name: "a.absent.seconds", unit: "s", description: "Nothing", kind: "gauge", points: [] },
];

test("formatPrometheus writes cumulative buckets, unit suffixes and escaped labels", () => {
  const labels = 'http_route="/a\\\\\\"\\n",http_response_status_code="204"';
  expect(formatPrometheus(families, "prometheus")).toBe(
    `# HELP http_server_request_duration_seconds How long
# TYPE http_server_request_duration_seconds histogram
http_server_request_duration_seconds_bucket{${labels},le="0.5"} 2
http_server_request_duration_seconds_bucket{${labels},le="1.0"} 2
http_server_request_duration_seconds_bucket{${labels},le="+Inf"} 3
http_server_request_duration_seconds_sum{${labels}} 7.5
http_server_request_duration_seconds_count{${labels}} 3
# HELP a_refusals_total How many
# TYPE a_refusals_total counter
a_refusals_total 3
# HELP a_backlog_bytes How much
# TYPE a_backlog_bytes gauge
a_backlog_bytes 9
# HELP a_size How large
# TYPE a_size histogram
a_size_bucket{le="1.0"} 1
a_size_bucket{le="+Inf"} 1
a_size_sum 1
a_size_count 1
# HELP a_cpu_time_seconds_total How busy
# TYPE a_cpu_time_seconds_total counter
a_cpu_time_seconds_total{mode="user"} 0.5
a_cpu_time_seconds_total{mode="system"} 0
# HELP a_share_ratio Which part
# TYPE a_share_ratio gauge
a_share_ratio 0.25
# HELP a_absent_seconds Nothing
# TYPE a_absent_seconds gauge
`,
  );
});

test("formatPrometheus for OpenMetrics writes units and # EOF", () => {
  const lines = formatPrometheus(families, "openmetrics").split("\n");
  expect(lines).toEqual(expect.arrayContaining(["# TYPE a_refusals counter", "a_refusals_total 3"]));
  expect(lines).toContain("# UNIT a_backlog_bytes bytes");
  const busy = lines.indexOf("# HELP a_cpu_time_seconds How busy");
  expect(lines.slice(busy + 1, busy + 4)).toEqual([
    "# TYPE a_cpu_time_seconds counter",
    "# UNIT a_cpu_time_seconds seconds",
    'a_cpu_time_seconds_total{mode="user"} 0.5',
  ]);
  expect([lines.filter((line) => line.startsWith("# UNIT a_refusals")), lines.slice(-2)]).toEqual([[], ["# EOF", ""]]);
});

describe("the content type of /metrics", () => {
  const plain = "text/plain; version=0.0.4; charset=utf-8";
  const open = "application/openmetrics-text; version=1.0.0; charset=utf-8";

  test.each([
    { accept: undefined, want: plain },
    { accept: "*/*", want: plain },
    { accept: "text/html", want: plain },
    { accept: "application/openmetrics-text", want: open },
    { accept: "Application/OpenMetrics-Text; Version=1.0.0", want: open },
    { accept: "application/openmetrics-text; version=0.0.1", want: plain },
    { accept: "application/openmetrics-text;q=0", want: plain },
    { accept: "text/html,application/openmetrics-text;q=0.5", want: open },
    { accept: "text/plain;q=0.9,application/openmetrics-text;q=0.1", want: plain },
    // If a format has several weights, the highest one counts, in any order.
    { accept: "text/plain;version=0.0.4;q=0.5,text/plain;q=0.1,application/openmetrics-text;q=0.3", want: plain },
    { accept: "application/openmetrics-text;q=0.5,application/openmetrics-text;q=0.1,text/plain;q=0.3", want: open },
    // The Accept field that Prometheus sends.
    {
      accept:
        "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
      want: open,
    },
    { accept: `${"application/openmetrics-text;q=x,".repeat(100)};;,=`, want: plain },
    { accept: "application/openmetrics-text;q=1.5", want: plain },
    { accept: "text/plain;q=0.9999,application/openmetrics-text;q=0.1", want: open },
  ])('is $want for "Accept: $accept"', async ({ accept, want }) => {
    const endpoint = createMetricsEndpoint(() => families);
    expect(endpoint).toMatchObject({ path: "/metrics", open: true });
    const response = await askEndpoint(endpoint, accept === undefined ? {} : { accept });
    expect(response).toMatchObject({ httpStatus: 200, header: { "content-type": want, "cache-control": "no-store" } });
    expect(String(response.body).endsWith("# EOF\n")).toBe(want === open);
  });
});

describe("a metric", () => {
  const metric = { name: "a", unit: "", description: "A" };

  test("counts a value in the first bucket whose bound is not lower", () => {
    const metrics = new Metrics();
    const series = metrics.histogram(metric, [1, 2]).with({});
    for (const value of [0, 1, 1.5, 2, 2.1, 1e9]) series.record(value);
    const [family] = metrics.collect();
    expect(family?.points).toEqual([{ attributes: {}, counts: [2, 2, 2], sum: 1e9 + 6.6 }]);
  });

  test("has at most a thousand series and one for the overflow", () => {
    const metrics = new Metrics();
    const counter = metrics.counter(metric);
    for (let at = 0; at < 1_500; at++) counter.with({ at }).add(1);
    counter.with({ at: 7 }).add(1);
    const points = metrics.collect()[0]?.points ?? [];
    expect(points).toHaveLength(1_001);
    expect(points[7]).toEqual({ attributes: { at: 7 }, value: 2 });
    expect(points.at(-1)).toEqual({ attributes: { "otel.metric.overflow": true }, value: 500 });
  });
});
