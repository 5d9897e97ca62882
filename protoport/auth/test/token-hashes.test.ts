import { describe, expect, test } from "vitest";
import { formatTokenHash, parseTokenHashes, removeToken } from "../src/token-hashes.ts";

const hexA = "a".repeat(64);
const hexB = "b".repeat(64);
const problemOf = (scope: string): string | undefined => (scope === "a" ? undefined : `${scope} is not a scope`);
const base = { digest: hexA, name: "ci", scopes: "all", expiresAtMs: undefined } as const;

describe("parseTokenHashes", () => {
  test.each(
    // oxfmt-ignore
    [
      ["a token with all scopes and no expiry", `sha256:${hexA} ci - -`, [base]],
      ["hex digits in upper case", `sha256:${"A".repeat(64)} ci - -`, [base]],
      ["columns separated by tabs and spaces", `  sha256:${hexA}\t ci  -\t-  `, [base]],
      ["CRLF line breaks", `sha256:${hexA} ci - -\r\n`, [base]],
      ["a byte order mark", `\uFEFFsha256:${hexA} ci - -`, [base]],
      ["scopes", `sha256:${hexA} ci a,b:c -`, [{ ...base, scopes: new Set(["a", "b:c"]) }]],
      ["an expiry", `sha256:${hexA} ci - 2030-01-31T12:00:00Z`, [{ ...base, expiresAtMs: Date.UTC(2030, 0, 31, 12) }]],
      ["an expiry with an offset and a fraction", `sha256:${hexA} ci - 2030-01-31T12:00:00.5+02:00`,
        [{ ...base, expiresAtMs: Date.UTC(2030, 0, 31, 10, 0, 0, 500) }]],
      ["a leap day as expiry", `sha256:${hexA} ci - 2028-02-29T00:00:00Z`,
        [{ ...base, expiresAtMs: Date.UTC(2028, 1, 29) }]],
      ["no lines", "", []],
      ["comments and empty lines", "# tokens\n\n   \n  # more\n", []],
      ["several lines", `sha256:${hexA} ci - -\n# revoked: cd\nsha256:${hexB} ops@site/1 - -`,
        [base, { ...base, digest: hexB, name: "ops@site/1" }]],
    ],
  )("accepts %s in a file", (_name, given, want) => {
    expect(parseTokenHashes(given)).toEqual({ kind: "value", value: want });
  });

  const columns = 'a line must have 4 columns "sha256:<hex> name scopes|- expiry|-"';
  const hash = 'the hash must be "sha256:" followed by 64 hex digits';
  const name = "the name must be 1 to 128 letters, digits or - . _ @ / :";
  const expiry = 'the expiry must be a date-time such as 2030-01-31T12:00:00Z ("-" means never)';
  const good = `sha256:${hexA} ci - -`;

  test.each(
    // oxfmt-ignore
    [
      ["too few columns", `sha256:${hexA} ci -`, [`line 1: ${columns}, got 3`]],
      ["too many columns", `${good} -`, [`line 1: ${columns}, got 5`]],
      ["a hash of another algorithm", `sha512:${hexA} ci - -`, [`line 1: ${hash}`]],
      ["a hash that is too short", `sha256:${"a".repeat(63)} ci - -`, [`line 1: ${hash}`]],
      ["a hash with a prefix", `xsha256:${hexA} ci - -`, [`line 1: ${hash}`]],
      ["a token instead of a hash", `secret-token ci - -`, [`line 1: ${hash}`]],
      ["a name with a quote", `sha256:${hexA} "ci" - -`, [`line 1: ${name}`]],
      ["a name that is too long", `sha256:${hexA} ${"n".repeat(129)} - -`, [`line 1: ${name}`]],
      ["an empty scope", `sha256:${hexA} ci a,,b -`,
        ['line 1: scope 2 is not a valid scope-token (RFC 6749 §3.3; "-" means all scopes)']],
      ["a scope of 129 characters", `sha256:${hexA} ci ${"s".repeat(129)} -`,
        ['line 1: scope 1 is not a valid scope-token (RFC 6749 §3.3; "-" means all scopes)']],
      ["an invalid offset", `sha256:${hexA} ci - 2030-01-31T12:00:00+24:00`, [`line 1: ${expiry}`]],
      ["an invalid date", `sha256:${hexA} ci - 2030-02-30T00:00:00Z`, [`line 1: ${expiry}`]],
      ["a year of six digits", `sha256:${hexA} ci - +002030-01-31T12:00:00Z`, [`line 1: ${expiry}`]],
      ["text after the date-time", `sha256:${hexA} ci - 2030-01-31T12:00:00Z!`, [`line 1: ${expiry}`]],
      ["an invalid hour", `sha256:${hexA} ci - 2030-01-31T25:00:00Z`, [`line 1: ${expiry}`]],
      ["a duplicate name", `${good}\nsha256:${hexB} ci - -`, ["line 2: the name already appears on line 1"]],
      ["a duplicate hash", `${good}\n\nsha256:${hexA} cd - -`, ["line 3: the hash already appears on line 1"]],
      ["a duplicate line", `${good}\n${good}`,
        ["line 2: the name already appears on line 1", "line 2: the hash already appears on line 1"]],
      ["each invalid line", `${good}\nnonsense\n# comment\nsha256:x "y" - -`,
        [`line 2: ${columns}, got 1`, `line 4: ${hash}; ${name}`]],
    ],
  )("reports %s as a problem", (_, given, want) => {
    expect(parseTokenHashes(given)).toEqual({ kind: "problems", problems: want });
  });

  test("reports every scope that the parameter scopeProblem rejects", () => {
    expect(parseTokenHashes(`sha256:${hexA} ci a -`, problemOf).kind).toBe("value");
    expect(parseTokenHashes(`sha256:${hexA} ci a,b -`, problemOf)).toEqual({
      kind: "problems",
      problems: ["line 1: b is not a scope"],
    });
    expect(parseTokenHashes(`sha256:${hexA} ci a,b,c -`, problemOf)).toEqual({
      kind: "problems",
      problems: ["line 1: b is not a scope; c is not a scope"],
    });
  });

  test.each([
    base,
    { ...base, scopes: new Set(["orders:delete", "x"]) },
    { ...base, expiresAtMs: Date.UTC(2031, 4, 6, 7, 8, 9, 10) },
  ])("reads the token %j from formatTokenHash's output", (token) => {
    expect(parseTokenHashes(formatTokenHash(token))).toEqual({ kind: "value", value: [token] });
  });
});

test.each([
  ["the token's line", `sha256:${hexA} ci - -\nsha256:${hexB} cd - -\n`, `sha256:${hexB} cd - -\n`],
  ["a line with tabs and spaces", `a\n  sha256:${hexA}\t ci  -\t-\nb`, "a\nb"],
  ["the token's line, not a comment,", `# not ci\n # ci\nsha256:${hexA} ci - -\n`, "# not ci\n # ci\n"],
])("removeToken removes only %s from the file", (_name, given, want) => {
  expect(removeToken(given, "ci")).toEqual({ kind: "value", value: want });
});

test("removeToken reports that no token has the name", () => {
  const problems = ["no token is named ci"];
  expect(removeToken(`# ci\nsha256:${hexA} cd - -\n`, "ci")).toEqual({ kind: "problems", problems });
});
