import { describe, expect, test } from "vitest";
import type { CallFigures, ServerFigures } from "../../../../bench/figures.ts";
import type { Subject } from "../../../../bench/scenarios.ts";
import { toCallFigures } from "../../../../bench/table.ts";
import type { Turn } from "../../../../bench/turns.ts";
import { differencesOf } from "../../../../bench/verify.ts";

const latencyUs = { p50: 1, p99: 2 };

function figuresOf(
  ...servers: readonly (Pick<ServerFigures, "name" | "timesFloor"> & Partial<ServerFigures>)[]
): CallFigures {
  const others = {
    cpuUs: 1,
    leastCpuUs: 1,
    leastTimesFloor: 1,
    requestsPerS: 1,
    latencyUs,
    rssIdleBytes: 1,
    rssLoadedBytes: 1,
  };
  return {
    measured: { date: "2026-11-27", node: "26.10.0", cores: 2 },
    servers: servers.map((server) => ({ ...others, ...server })),
    foreignLoad: 0,
  };
}

describe("differencesOf", () => {
  const floor = { name: "floor", timesFloor: 1 };
  const published = figuresOf(
    floor,
    { name: "a", timesFloor: 2 },
    { name: "b", timesFloor: 3, timesFloorRange: [2, 4] },
  );

  test.each(
    // oxfmt-ignore
    [
      ["accepts ratios within 15 % of the published ones",
        [{ name: "a", timesFloor: 2.29 }, { name: "b", timesFloor: 4.5 }], []],
      ["reports a ratio that is too high", [{ name: "a", timesFloor: 2.4 }, { name: "b", timesFloor: 3 }],
        ["a: 2.40 × the floor, published 2.00"]],
      ["reports ratios that are too low", [{ name: "a", timesFloor: 1.6 }, { name: "b", timesFloor: 1.6 }],
        ["a: 1.60 × the floor, published 2.00", "b: 1.60 × the floor, published 3.00"]],
      ["reports servers that are only measured or only published",
        [{ name: "a", timesFloor: 2 }, { name: "c", timesFloor: 3 }],
        ["c: measured, but not published", "b: published, but not measured"]],
    ],
  )("%s", (_name, servers, want) => {
    expect(differencesOf(figuresOf(floor, ...servers), published)).toEqual(want);
  });

  test("reports a scenario without published figures", () => {
    expect(differencesOf(published, undefined)).toEqual(["no figures are published for this scenario"]);
  });
});

test.each([
  ["toCallFigures omits the ratio range of similar rounds", [1, 1.1], undefined],
  ["toCallFigures includes the ratio range of rounds that differ by more than a tenth", [1.4, 1, 1.2], [1, 1.4]],
])("%s", (_name, rounds, want) => {
  const subject: Subject = { name: "a", program: "a.ts", environment: {} };
  const turns = rounds.map((timesFloor, round): Turn => {
    return {
      round,
      timesFloor,
      cpuUs: 1,
      requestsPerS: 1,
      latencyUs,
      rssIdleBytes: 1,
      rssLoadedBytes: 1,
      foreignLoad: 0,
    };
  });
  expect(toCallFigures([{ subject, turns }]).servers[0]?.timesFloorRange).toEqual(want);
});
