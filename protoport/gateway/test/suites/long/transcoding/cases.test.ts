import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generatedFiles } from "../../../../../conformance/generate/files.ts";
import { casesFolder, parseCase } from "../../../../../conformance/runner/index.ts";
import { allCases as cases } from "../../../../../testing/src/transcoding/all-cases.ts";

test("the transcoding suite has at least 1,000 cases with unique ids", () => {
  expect(cases.length).toBeGreaterThanOrEqual(1000);
  expect(new Set(cases.map(({ id }) => id)).size).toBe(cases.length);
});

test("no two cases have the same request and expectation", () => {
  const lines = cases.map(({ request, expect: expectation }) => JSON.stringify([request, expectation]));
  expect(lines.filter((line, at) => lines.indexOf(line) !== at)).toEqual([]);
});

const standards =
  /^(?:RFC \d{4} §|google\/(?:api|protobuf|rpc)\/[a-z_]+\.proto|ProtoJSON, |Protocol Buffers|WHATWG URL §|AIP-\d+)/;

test("each case cites a standard", () =>
  expect(cases.filter(({ sentence }) => !standards.test(sentence)).map(({ id }) => id)).toEqual([]));

test("case ids contain no special characters of glob patterns", () =>
  expect(cases.filter(({ id }) => !/^[a-z0-9.-]+$/.test(id)).map(({ id }) => id)).toEqual([]));

test.each(Object.entries(generatedFiles()))(
  "%s is the output of `node protoport/conformance/generate/main.ts`",
  (name, text) => expect(readFileSync(join(casesFolder, name), "utf8") === text).toBe(true),
);

const request = { method: "GET", target: "/" };
const good = { id: "a", title: "t", level: "must", sentence: "s", request, expect: { refused: ["4xx"] } };

test("parseCase parses a line", () =>
  expect(parseCase(JSON.stringify(good), "g", "g:1")).toEqual({ ...good, group: "g", needs: [], or: [] }));

test.each([
  ["invalid JSON", "{", "must be JSON"],
  ["an array", "[]", "must be an object"],
  ["an unknown member", { ...good, needz: [] }, "unknown member needz"],
  ["a missing sentence", { ...good, sentence: "" }, "sentence is missing"],
  ["a missing id", { ...good, id: undefined }, "id is missing"],
  ["an unknown level", { ...good, level: "may" }, 'level must be "must" or "should", got "may"'],
  ["an unknown need", { ...good, needs: ["magic"] }, "needs must be"],
  ["two bodies", { ...good, request: { method: "GET", target: "/", json: "", text: "" } }, "request"],
  ["a missing target", { ...good, request: { method: "GET" } }, "request"],
  ["a field without a value", { ...good, request: { ...good.request, header: [["a"]] } }, "request"],
  ["a missing expectation", { ...good, expect: {} }, "expect must be"],
  ["an invalid status", { ...good, expect: { refused: ["9xx"] } }, "expect must be"],
  ["an invalid alternative", { ...good, or: [{ rpc: "A" }] }, "or must be"],
])("a line with %s is rejected by parseCase", (_, line, says) => {
  const text = typeof line === "string" ? line : JSON.stringify(line);
  expect(() => parseCase(text, "g", "g:1")).toThrow(`g:1: ${says}`);
});
