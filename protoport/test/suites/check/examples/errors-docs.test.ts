import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { problems } from "../../../../gateway/src/http/problems.ts";
import { checkErrors, codeName, documentedIn, testsIn, unionIn } from "../../../support/docs/check-errors.ts";
import { readPage } from "../../../support/docs/page-blocks.ts";
import { protoportTree } from "../../../support/source-files.ts";

const page = "protoport/docs/reference/errors.md";
const problemsFile = "gateway/http/problems.ts";
const documented = documentedIn(page);

const sources: ReadonlyMap<string, string> = new Map(
  protoportTree.files
    // Client, command and plugin errors, and messages for a proxy's operator, are not responses of a server.
    .filter(
      (file) =>
        !/^(?:command-line|frameworks|grpc-handlers|rest-client)\/|^proxy\/(?:client|upstreams\/(?!call-queue)|forward\/descriptor-reader)/.test(
          file,
        ),
    )
    .map((file) => [file, protoportTree.textOf(file)]),
);

checkErrors({
  page,
  sources,
  tests: testsIn("protoport"),
  unions: [
    { file: problemsFile, codes: Object.keys(problems) },
    ...["auth/inputs/error-code.ts", "telemetry/logs/error-code.ts"].map((file) => unionIn(sources, file)),
  ],
});

test("protoport/docs/reference/errors.md lists exactly the gateway's identifiers from problems.ts", () => {
  const parts = readPage(page).split(/^## /m);
  const ofGateway = parts.find((section) => section.startsWith("Identifiers\n")) ?? "";
  const source = sources.get(problemsFile) ?? "";
  const comments = source.matchAll(/^ {2}\/\*\* (?<sentence>.+) \*\/\n {2}(?<name>ERR_\w+): /gm);
  const sentences = new Map([...comments].map(({ groups }) => [groups?.["name"], groups?.["sentence"]]));
  const rows = Object.entries(problems).map(([name, row]) => {
    const response = "code" in row ? `${codeName(Code[row.code])} ${Code[row.code]}, ${row.httpStatus}` : "–";
    return `| \`${name}\` | ${response} | ${sentences.get(name)}`;
  });
  const lines = ofGateway.split("\n").filter((line) => line.startsWith("| `"));
  expect(lines.map((line) => line.replace(/<br>[^|]*(?= \|)/, "").replace(/ \|$/, ""))).toEqual(rows);
});

/**
 * The codes with which the source responds, by identifier. Includes the default code and codes that calls pass instead.
 */
const codesInSource: ReadonlyMap<string, ReadonlySet<Code>> = new Map(
  Object.entries(problems).flatMap(([name, row]) => {
    if (!("code" in row)) return [];
    const passed = new RegExp(String.raw`[pP]roblem\(\s*"${name}",[^;]*?\bcode: (?:Code\.|")(?<code>\w+)`, "g");
    const others = [...sources.values()].flatMap((source) => [...source.matchAll(passed)].map(codeIn));
    return [[name, new Set([Code[row.code], ...others])] as const];
  }),
);

function codeIn({ groups }: RegExpMatchArray): Code {
  const [, code] = Object.entries(Code).find(([name]) => name === groups?.["code"]) ?? [];
  if (typeof code !== "number") throw new Error(`there is no code ${groups?.["code"]}`);
  return code;
}

test.each([...codesInSource])(
  "protoport/docs/reference/errors.md has exactly the codes that %s has in the source",
  (name, codes) => {
    const inDocs = documented.filter(({ errorCodes }) => errorCodes.includes(name)).map(({ code }) => code);
    expect(new Set(inDocs)).toEqual(codes);
  },
);

const withStatus = documented.filter(({ rest }) => rest !== undefined);

test.each(withStatus)("the HTTP status $rest of $errorCodes in protoport/docs/reference/errors.md is sent", (row) => {
  const statuses = Object.entries(problems).flatMap(([name, problem]) => {
    if (!row.errorCodes.includes(name) || !("code" in problem)) return [];
    const passed = new RegExp(String.raw`[pP]roblem\(\s*"${name}",[^;]*?\bhttpStatus: (\d+)`, "g");
    const others = [...sources.values()].flatMap((source) => [...source.matchAll(passed)]);
    return [String(problem.httpStatus), ...others.map(([, status]) => status)];
  });
  expect(statuses).toContain(row.rest);
});
