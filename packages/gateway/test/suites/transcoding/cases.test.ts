import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generatedFiles } from "../../../../conformance/generate/files.ts";
import { casesFolder, parseCase } from "../../../../conformance/runner/index.ts";
import { allCases as cases } from "../../../../testing/src/transcoding/all-cases.ts";

test("there are at least 1,000 cases, each with an id of its own", () => {
  expect(cases.length).toBeGreaterThanOrEqual(1000);
  expect(new Set(cases.map(({ id }) => id)).size).toBe(cases.length);
});

test("each request is there once for each expectation", () => {
  const lines = cases.map(({ request, expect: want }) => JSON.stringify([request, want]));
  expect(lines.filter((line, at) => lines.indexOf(line) !== at)).toEqual([]);
});

const standards =
  /^(?:RFC \d{4} §|google\/(?:api|protobuf|rpc)\/[a-z_]+\.proto|ProtoJSON, |Protocol Buffers|WHATWG URL §|AIP-\d+)/;

test("each case cites sections of standards", () => {
  expect(cases.filter(({ sentence }) => !standards.test(sentence)).map(({ id }) => id)).toEqual([]);
});

test("no id is a part of a pattern", () => {
  expect(cases.filter(({ id }) => !/^[a-z0-9.-]+$/.test(id)).map(({ id }) => id)).toEqual([]);
});

test.each(Object.entries(generatedFiles()))(
  "%s is as `node packages/conformance/generate/main.ts` writes it",
  (name, text) => {
    expect(readFileSync(join(casesFolder, name), "utf8") === text).toBe(true);
  },
);

const good = {
  id: "a",
  title: "t",
  level: "must",
  sentence: "s",
  request: { method: "GET", target: "/" },
  expect: { refused: ["4xx"] },
};

test("a line is a case", () => {
  expect(parseCase(JSON.stringify(good), "g", "g:1")).toEqual({ ...good, group: "g", needs: [], or: [] });
});

test.each([
  ["text that is no JSON", "{", "not JSON"],
  ["a list", "[]", "not an object"],
  ["a member that nobody knows", { ...good, needz: [] }, "unknown member needz"],
  ["no sentence", { ...good, sentence: "" }, "sentence is missing"],
  ["no id", { ...good, id: undefined }, "id is missing"],
  ["another level", { ...good, level: "may" }, "level is neither"],
  ["a need that nobody knows", { ...good, needs: ["magic"] }, "needs something"],
  ["two bodies", { ...good, request: { method: "GET", target: "/", json: "", text: "" } }, "request"],
  ["no target", { ...good, request: { method: "GET" } }, "request"],
  ["a field without a value", { ...good, request: { ...good.request, header: [["a"]] } }, "request"],
  ["no expectation", { ...good, expect: {} }, "expect is no"],
  ["a status that is none", { ...good, expect: { refused: ["9xx"] } }, "expect is no"],
  ["an alternative that is none", { ...good, or: [{ rpc: "A" }] }, "or is no"],
])("%s is no case", (_, line, says) => {
  const text = typeof line === "string" ? line : JSON.stringify(line);
  expect(() => parseCase(text, "g", "g:1")).toThrow(`g:1: ${says}`);
});
