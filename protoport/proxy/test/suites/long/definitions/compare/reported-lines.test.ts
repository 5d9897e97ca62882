import { expect, test } from "vitest";
import { readDescriptorSet } from "../../../../../../gateway/src/protobuf/descriptors/index.ts";
import { compareServices, withoutRules } from "../../../../../src/definitions/compare/index.ts";
import { buildCases } from "./build-cases.ts";
import { type ComparisonCase, toProto } from "./case.ts";

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
  const [old, now] = [built.old, built.now].map((set) => readDescriptorSet(set).services);
  const lines = toProto({ ...change.old, ...change.now }, "c0").split("\n");
  const changes = compareServices(old ?? [], now ?? [], {}, withoutRules);
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
  const [old, now] = [built.old, built.now].map((set) => readDescriptorSet(set).services);
  for (const { file } of [...(old ?? []), ...(now ?? [])]) file.proto.sourceCodeInfo = undefined;
  const changes = compareServices(old ?? [], now ?? [], {}, withoutRules);
  expect(new Set(changes.map(({ file, line }) => `${file}:${line}`))).toEqual(new Set(["c0.proto:undefined"]));
});
