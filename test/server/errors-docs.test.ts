import { Code } from "@connectrpc/connect";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { problems } from "../../protoport/gateway/src/http/errors/index.ts";
import { situations } from "../contract/situations.ts";
import { readPage } from "../../protoport/test/support/docs/page-blocks.ts";
import { projectFolder } from "../../protoport/testing/src/process/child-program.ts";
import { projectFiles } from "../../protoport/testing/src/project-files.ts";
import { allSourceFiles, sourcePath } from "../support/source-files.ts";

/** A message in protoport/docs/reference/errors.md. A row may have several. */
interface Documented {
  /** The message, with `…` for variable parts. */
  readonly message: string;
  readonly code: Code;
  /** The HTTP status for a request that matches no operation; – if REST never responds with the message. */
  readonly rest: string | undefined;
  readonly errorCodes: readonly string[];
}

const page = readPage("protoport/docs/reference/errors.md");

const documented: readonly Documented[] = page.split("\n").flatMap((line) => {
  const [, messages, name, number, rest, codes = ""] =
    /^\| `(.+?)` \| ([A-Z_]+) (\d+) \|(?: (\d+|–) \|)? ((?:`ERR_\w+`(?:, )?)+) \|/.exec(line) ?? [];
  if (messages === undefined) return [];
  const row = { name, code: Number(number), rest, errorCodes: codesIn(codes) };
  return messages.split("`<br>`").map((message) => ({ ...row, message }));
});

const sources: ReadonlyMap<string, string> = new Map(
  allSourceFiles()
    // Client and plugin errors, and messages for a proxy's operator, are not responses of this server.
    .filter(
      (file) =>
        !/^plantstore\/client\/|^frameworks\/|^grpc-handlers\/|^rest-client\/|^proxy\/(?:client|upstreams\/(?!call-queue)|forward\/descriptor-reader)/.test(
          file,
        ),
    )
    .map((file) => [file, readFileSync(sourcePath(file), "utf8")]),
);

/** Returns the identifiers in a text. */
function codesIn(text: string): readonly string[] {
  return [...new Set(text.match(/\bERR_[A-Z_0-9]+\b/g))].toSorted();
}

const tests = ["test", "protoport"]
  .flatMap((folder) => projectFiles(folder))
  .filter((file) => file.endsWith(".test.ts") || file.endsWith("situations.ts"))
  .map((file) => readFileSync(join(projectFolder, file), "utf8"))
  .join("\n");

// Matches an error's text in the source: a literal in the message's position, after an optional identifier.
const text = String.raw`(?<text>"[^"]*"|'[^']*'|` + "`[^`]*`)";
const places = [
  String.raw`(?:problem|HttpProblem|unauthenticated|refusal|errorOf)\(\s*"(?<code>ERR_\w+)",\s*${text},?`,
  String.raw`new ConnectError\(\s*${text},`,
  String.raw`const (?:message|reason) =\s*${text};`,
  String.raw`(?:queue_full|queue_timeout|unsent_bytes): ${text}`,
  String.raw`(?:errorDescription|faultMessage)(?: =|:) ${text}`,
].map((pattern) => new RegExp(pattern, "g"));

const inCode = [...sources].flatMap(([file, source]) =>
  places.flatMap((place) =>
    [...source.matchAll(place)].map(({ groups }) => ({
      file,
      message: toPattern(groups?.["text"] ?? ""),
      errorCode: groups?.["code"],
    })),
  ),
);

function toPattern(literal: string): string {
  return literal.slice(1, -1).replaceAll(/\$\{(?:[^{}]|\{[^}]*\})*\}/g, "…");
}

function matches(pattern: string, message: string): boolean {
  const parts = pattern.split("…").map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(message);
}

/** Returns a code as gRPC spells it, such as NOT_FOUND. */
function codeName(code: Code): string | undefined {
  return Code[code]?.replaceAll(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase();
}

test("the patterns find more than 40 error messages in the source", () => {
  expect(inCode.length).toBeGreaterThan(40);
});

test.each(inCode)(
  'the message "$message" in $file is documented in protoport/docs/reference/errors.md',
  ({ message, errorCode }) => {
    const rows = documented.filter((row) => matches(row.message, message));
    expect(rows).not.toEqual([]);
    if (errorCode !== undefined) expect(rows.flatMap((row) => row.errorCodes)).toContain(errorCode);
  },
);

test.each(documented)(
  'the message "$message" in protoport/docs/reference/errors.md is in the source',
  ({ message }) => {
    const all = [...sources.values()].join("\n");
    expect(message.split("…").filter((part) => !all.includes(part))).toEqual([]);
  },
);

test.each(documented)(
  'the code for "$message" in protoport/docs/reference/errors.md has matching name and number',
  ({ code, ...row }) => {
    expect(row).toMatchObject({ name: codeName(code) });
  },
);

/** Each package's identifiers, by the file that declares them. */
const unions = [
  { file: "http/errors/problems.ts", codes: Object.keys(problems) },
  ...["auth/inputs/error-code.ts", "telemetry/logs/error-code.ts", "plantstore/service/error-code.ts"].map((file) => ({
    file,
    codes: [...(sources.get(file) ?? "").matchAll(/"(ERR_\w+)"/g)].map(([, code = ""]) => code),
  })),
];
const declared = unions.flatMap(({ codes }) => codes);

test("protoport/docs/reference/errors.md explains exactly the declared identifiers", () => {
  expect(new Set(declared).size).toBe(declared.length);
  expect(codesIn(page)).toEqual(declared.toSorted());
});

test.each(unions)("all identifiers in $file are used", ({ file, codes }) => {
  const others = [...sources].filter(([other]) => other !== file).map(([, source]) => source);
  const used = new Set(codesIn(others.join("\n")));
  expect(codes.filter((code) => !used.has(code))).toEqual([]);
});

test.each(declared)("the identifier %s is covered by a test", (code) => {
  expect(tests).toMatch(new RegExp(`"${code}"|\\b${code}:|\\[${code}\\]`));
});

test("protoport/docs/reference/errors.md lists exactly the gateway's identifiers from problems.ts", () => {
  const ofGateway = page.split(/^## /m).find((section) => section.startsWith("Identifiers\n")) ?? "";
  const source = sources.get("http/errors/problems.ts") ?? "";
  const comments = source.matchAll(/^ {2}\/\*\* (?<sentence>.+) \*\/\n {2}(?<name>ERR_\w+): /gm);
  const sentences = new Map([...comments].map(({ groups }) => [groups?.["name"], groups?.["sentence"]]));
  const rows = Object.entries(problems).map(([name, row]) => {
    const response = "code" in row ? `${codeName(Code[row.code])} ${Code[row.code]} | ${row.httpStatus}` : "– | –";
    return `| \`${name}\` | ${response} | ${sentences.get(name)} |`;
  });
  expect(ofGateway.split("\n").filter((line) => line.startsWith("| `"))).toEqual(rows);
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

const outsideOperations = documented.filter(({ rest }) => rest !== undefined && rest !== "400" && rest !== "–");

test.each(outsideOperations)(
  'the HTTP status for "$message" in protoport/docs/reference/errors.md matches problems.ts',
  (row) => {
    const statuses = Object.entries(problems).flatMap(([name, problem]) =>
      row.errorCodes.includes(name) && "code" in problem ? [String(problem.httpStatus)] : [],
    );
    expect(statuses).toEqual([row.rest]);
  },
);

const errors = Object.values(situations)
  .flat()
  .flatMap(({ name, want }) => (want.code === "ok" ? [] : [{ name, code: want.code, message: want.message ?? "" }]));

test.each(errors)(
  "the error when the server $name is documented in protoport/docs/reference/errors.md",
  ({ code, message }) => {
    const rows = documented.filter((row) => matches(row.message, message));
    expect(rows.map((row) => codeName(row.code)?.toLowerCase())).toContain(code);
  },
);
