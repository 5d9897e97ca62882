import type { DescService } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { readDescriptorSet } from "../../../../../../gateway/src/protobuf/descriptors/index.ts";
import { compareServices, loadRules } from "../../../../../src/definitions/compare/index.ts";
import { buildCases } from "./build-cases.ts";
import { compatibleCases } from "./cases/compatible-cases.ts";
import { detectorCases } from "./cases/detector-cases.ts";
import { routeCases } from "./cases/route-cases.ts";
import { ruleCases } from "./cases/rule-cases.ts";
import { exchange } from "./exchange.ts";

// What `check --against` reports, and what a client sees. A request recorded for the old definition is sent to a
// gateway with the old definition, and to one with the new definition.

const cases = [...detectorCases, ...routeCases, ...ruleCases, ...compatibleCases].map((each, at) => ({
  ...each,
  prefix: `c${at}.`,
}));

/** A version's services: all of them, and those visible to callers with the label PREVIEW, without others. */
type VersionServices = { readonly all: readonly DescService[]; readonly visible: readonly DescService[] };

let old: VersionServices;
let now: VersionServices;
beforeAll(async () => {
  const built = await buildCases(cases);
  [old, now] = [servicesOf(built.old), servicesOf(built.now)];
}, 60_000);

function servicesOf(set: Uint8Array): VersionServices {
  const visible = readDescriptorSet(set, { allow: ["PREVIEW"] }).services;
  return { all: readDescriptorSet(set).services, visible };
}

function inPackage(services: readonly DescService[], prefix: string): readonly DescService[] {
  return services.filter(({ typeName }) => typeName.startsWith(prefix));
}

describe("the comparison of definitions", () => {
  test.for(cases)("if $name, reports exactly the breaking changes", async ({ prefix, reports, rest = {} }) => {
    const [before, after] = [inPackage(old.all, prefix), inPackage(now.all, prefix)];
    const changes = compareServices(before, after, { rest }, await loadRules());
    const found = changes.flatMap(({ severity, rule, subject }) =>
      ["element-hidden", "operation-id-changed"].includes(rule) ? [] : [`${severity} ${rule} ${subject}`],
    );
    expect(found.map((line) => line.replaceAll(prefix, "")).toSorted()).toEqual(reports.toSorted());
  });
});

describe("a recorded request", () => {
  test.for(cases)("if $name, gets the same response unless a change is reported", async (each) => {
    const recordedServices = inPackage(old.visible, each.prefix);
    const before = await exchange(each, recordedServices, recordedServices);
    expect(before.status).toBeLessThan(300);
    const after = await exchange(each, recordedServices, inPackage(now.visible, each.prefix));
    if (each.reports.length === 0) expect(after).toEqual(before);
    else expect(after).not.toEqual(before);
  });
});
