import type { DescService } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { readDescriptorSet } from "../../../../../../gateway/src/protobuf/descriptors/index.ts";
import { compareServices, loadRules, withoutRules } from "../../../../../src/definitions/compare/index.ts";
import { buildCases } from "./build-cases.ts";
import { compatibleCases } from "./cases/compatible-cases.ts";
import { detectorCases } from "./cases/detector-cases.ts";
import { routeCases } from "./cases/route-cases.ts";
import { ruleCases } from "./cases/rule-cases.ts";
import { exchange } from "./exchange.ts";
import { type ComparisonCase, toProto } from "./case.ts";
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type } from "@bufbuild/protobuf/wkt";
import { setOfFiles } from "../../../../support/set-of-files.ts";

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

const inPackage = (services: readonly DescService[], prefix: string): readonly DescService[] =>
  services.filter(({ typeName }) => typeName.startsWith(prefix));

describe("the comparison of definitions", () => {
  test.for(cases)("if $name, reports exactly the breaking changes", async ({ prefix, reports, rest = {} }) => {
    const [before, after] = [inPackage(old.all, prefix), inPackage(now.all, prefix)];
    const found = compareServices(before, after, { rest }, await loadRules()).flatMap(({ severity, rule, subject }) =>
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

const hidden = (kind: string): string => `option (google.api.${kind}_visibility).restriction = "INTERNAL";`;

const change: ComparisonCase = {
  name: "each kind of element",
  reports: [],
  old: {
    methods: "rpc Removed(Req) returns (Res);\nrpc Hidden(Req) returns (Res);",
    req: "message Inner {\nstring id = 1;\n}\nenum Kind {\nNONE = 0;\nONE = 1;\n}\nInner inner = 1;\nKind kind = 2;\nTop top = 3;",
    types:
      "message Pad {}\nenum Top {\nZERO = 0;\nOLD = 1;\n}\nservice First {\nrpc Ask(Req) returns (Res);\n}\nservice Gone {\nrpc Ask(Req) returns (Res);\n}",
  },
  now: {
    methods: `rpc Hidden(Req) returns (Res) {\n${hidden("method")}\n}`,
    req: `message Inner {\n${hidden("message")}\nstring key = 1 [(google.api.field_visibility).restriction = "INTERNAL"];\n}
enum Kind {\n${hidden("enum")}\nNONE = 0;\n}\nInner inner = 1;\nKind kind = 2;\nTop top = 3;`,
    types: `message Pad {}\nenum Top {\nZERO = 0;\nNEW = 1 [(google.api.value_visibility).restriction = "INTERNAL"];\n}\nservice First {\n${hidden("api")}\nrpc Ask(Req) returns (Res);\n}`,
  },
};

test("a reported change has the line of its element or parent", async () => {
  const built = await buildCases([change]);
  const [before, after] = [built.old, built.now].map((set) => readDescriptorSet(set).services);
  const lines = toProto({ ...change.old, ...change.now }, "c0").split("\n");
  const changes = compareServices(before ?? [], after ?? [], {}, withoutRules);
  const found = changes.map(({ rule, subject, line = 0 }) => [`${rule} ${subject}`, lines[line - 1]?.trim()]);
  expect(Object.fromEntries(found)).toEqual({
    "element-hidden c0.Gone": 'syntax = "proto3";',
    "element-hidden c0.S.Removed": "service S {",
    "visibility-narrowed c0.First": "service First {",
    "visibility-narrowed c0.S.Hidden": "rpc Hidden(Req) returns (Res) {",
    "visibility-narrowed c0.Req.Inner": "message Inner {",
    "visibility-narrowed c0.Req.Kind": "enum Kind {",
    "visibility-narrowed c0.Top.OLD": 'NEW = 1 [(google.api.value_visibility).restriction = "INTERNAL"];',
    "visibility-narrowed c0.Req.Inner.id": 'string key = 1 [(google.api.field_visibility).restriction = "INTERNAL"];',
    "element-hidden c0.Req.Kind.ONE": "enum Kind {",
  });
});

test("a reported change has no line if the definition lacks source info", async () => {
  const built = await buildCases([change]);
  const [before, after] = [built.old, built.now].map((set) => readDescriptorSet(set).services);
  for (const { file } of [...(before ?? []), ...(after ?? [])]) file.proto.sourceCodeInfo = undefined;
  const changes = compareServices(before ?? [], after ?? [], {}, withoutRules);
  expect(new Set(changes.map(({ file, line }) => `${file}:${line}`))).toEqual(new Set(["c0.proto:undefined"]));
});

const length = 20_000;

/** Returns a set in which each message type has a field with the next type, and the last has a string field. */
function chain(lastField: string): Uint8Array {
  const label = FieldDescriptorProto_Label.OPTIONAL;
  const message = FieldDescriptorProto_Type.MESSAGE;
  const last = { name: lastField, number: lastField.length, type: FieldDescriptorProto_Type.STRING };
  const messageType = Array.from({ length }, (_, at) => {
    const field = at === length - 1 ? last : { name: "next", typeName: `.chain.M${at + 1}`, type: message };
    return { name: `M${at}`, field: [{ number: 1, label, ...field }] };
  });
  const service = [{ name: "S", method: [{ name: "Call", inputType: ".chain.M0", outputType: ".chain.M0" }] }];
  return setOfFiles({ name: "chain.proto", package: "chain", syntax: "proto3", messageType, service });
}

test("a chain of 20,000 nested message types is compared completely", async () => {
  const [before, after] = ["id", "key"].map((field) => readDescriptorSet(chain(field)).services);
  const changes = compareServices(before ?? [], after ?? [], {}, await loadRules());
  expect(changes.map(({ rule, subject }) => `${rule} ${subject}`)).toEqual([`element-hidden chain.M${length - 1}.id`]);
});
