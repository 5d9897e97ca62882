import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ownName, ownSqliteName, readFigures } from "../../bench/figures.ts";
import type { CallFigures } from "../../protoport/bench/figures.ts";
import { headlineTables } from "../../bench/summary-tables.ts";
import { pages, renderPage, unmeasured } from "../../bench/write-figures.ts";
import { projectFolder } from "../../protoport/testing/src/process/child-program.ts";

const figures = readFigures();

describe.each(pages)("%s", (page) => {
  const text = readFileSync(join(projectFolder, page), "utf8");

  test("has up-to-date tables from docs/figures.json", () => {
    expect(renderPage(text, figures)).toBe(text);
  });

  test("has figures in every table", () => {
    expect(text).not.toContain(`\n\n${unmeasured}\n\n`);
  });
});

test("renderPage overwrites a figure that was changed by hand", () => {
  const text = readFileSync(join(projectFolder, "README.md"), "utf8");
  const changed = text.replace(/^\| REST, .* \| [\d.]+ \| .*$/m, "| REST | 0.1 | 99.9 | 99.9 | – | – |");
  expect(changed).not.toBe(text);
  expect(renderPage(changed, figures)).toBe(text);
});

test("renderPage marks a table without figures as not measured", () => {
  const page = "<!-- figures: memory -->\n\nof an earlier time\n\n<!-- /figures -->";
  expect(renderPage(page, {})).toContain(`\n\n${unmeasured}\n\n`);
});

test("renderPage rejects an unknown figure name", () => {
  expect(() => renderPage("<!-- figures: speed -->\n\n1\n\n<!-- /figures -->", figures)).toThrow(
    'unknown name of figures "speed"',
  );
});

/** Compares servers by CPU time and p99, in µs. */
function comparison(servers: Readonly<Record<string, readonly [cpuUs: number, p99: number]>>): CallFigures {
  const others = {
    leastCpuUs: 0,
    timesFloor: 1,
    leastTimesFloor: 1,
    requestsPerS: 1,
    rssIdleBytes: 0,
    rssLoadedBytes: 0,
  };
  return {
    measured: { date: "2026-11-24", node: "26.10.0", cores: 2 },
    servers: Object.entries(servers).map(([name, [cpuUs, p99]]) => ({
      ...others,
      name,
      cpuUs,
      latencyUs: { p50: 0, p99 },
    })),
    foreignLoad: 0,
  };
}

describe("headlineTables", () => {
  const rest = { "node:http": [12, 2_000], "node:net": [8, 1_000], [ownName]: [11, 3_000] } as const;

  test("lists both embedded stores, and the peers with a lower p99", () => {
    const calls = {
      rest: comparison({ ...rest, [ownSqliteName]: [25, 9_000], fastify: [17, 4_000], axum: [8, 1_500] }),
      grpc: comparison({ "node:http2": [20, 3_000], [ownName]: [3, 2_000], "grpc-js": [42, 4_000] }),
    };
    expect(headlineTables(calls)).toBe(`\
| server CPU per call, µs | plantstore | bare node | fastify | grpc-js | connect-node |
|---|---|---|---|---|---|
| REST, \`DELETE /plants/7\`, store in memory | 11.0 | 12.0 | 17.0 | – | – |
| the same, store in an SQLite file | 25.0 | – | – | – | – |
| gRPC, 8 connections of 32 streams, store in memory | 3.0 | 20.0 | – | 42.0 | – |

| p99 latency where a peer's is lower, ms | plantstore | peers |
|---|---|---|
| REST, \`DELETE /plants/7\`, store in memory | 3.00 | 1.50 axum; 2.00 node:http |`);
  });

  test("omits scenarios without figures", () => {
    expect(headlineTables({ rest: comparison({ ...rest, [ownName]: [11, 500] }) })).toBe(`\
| server CPU per call, µs | plantstore | bare node | fastify | grpc-js | connect-node |
|---|---|---|---|---|---|
| REST, \`DELETE /plants/7\`, store in memory | 11.0 | 12.0 | – | – | – |

No peer has a lower p99 latency.`);
  });
});
