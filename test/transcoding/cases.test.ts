import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generatedFiles } from "../../conformance/generate/files.ts";
import { casesFolder, parseCase } from "../../conformance/runner/index.ts";
import { allCases as cases } from "./all-cases.ts";

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

test.each(Object.entries(generatedFiles()))("%s is as `node conformance/generate/main.ts` writes it", (name, text) => {
  expect(readFileSync(join(casesFolder, name), "utf8") === text).toBe(true);
});

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
  { what: "text that is no JSON", line: "{", says: "not JSON" },
  { what: "a list", line: "[]", says: "not an object" },
  { what: "a member that nobody knows", line: { ...good, needz: [] }, says: "unknown member needz" },
  { what: "no sentence", line: { ...good, sentence: "" }, says: "sentence is missing" },
  { what: "no id", line: { ...good, id: undefined }, says: "id is missing" },
  { what: "another level", line: { ...good, level: "may" }, says: "level is neither" },
  { what: "a need that nobody knows", line: { ...good, needs: ["magic"] }, says: "needs something" },
  {
    what: "two bodies",
    line: { ...good, request: { method: "GET", target: "/", json: "", text: "" } },
    says: "request",
  },
  { what: "no target", line: { ...good, request: { method: "GET" } }, says: "request" },
  {
    what: "a field without a value",
    line: { ...good, request: { ...good.request, header: [["a"]] } },
    says: "request",
  },
  { what: "no expectation", line: { ...good, expect: {} }, says: "expect is no" },
  { what: "a status that is none", line: { ...good, expect: { refused: ["9xx"] } }, says: "expect is no" },
  { what: "an alternative that is none", line: { ...good, or: [{ rpc: "A" }] }, says: "or is no" },
])("$what is no case", ({ line, says }) => {
  const text = typeof line === "string" ? line : JSON.stringify(line);
  expect(() => parseCase(text, "g", "g:1")).toThrow(`g:1: ${says}`);
});
