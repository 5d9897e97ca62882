import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { createCredentialReader } from "../../../src/operators/auth/credential-reader.ts";
import { digestOf } from "../../../src/operators/auth/token-verifier.ts";

function presented(text: string): object {
  return { kind: "presented", token: { text, digest: digestOf(text) } };
}

const connection = {};

describe("the reader of credentials", () => {
  test.each([
    { name: "reads a token with its SHA-256", authorization: "Bearer abc", want: presented("abc") },
    { name: "says that there is none", authorization: null, want: { kind: "missing" } },
    { name: "says that it is of another scheme", authorization: "Basic abc", want: { kind: "other-scheme" } },
    { name: "says that it is malformed", authorization: "Bearer a b", want: { kind: "malformed" } },
  ])("$name, for the first time and again", ({ authorization, want }) => {
    const read = createCredentialReader();
    expect([read(authorization, connection), read(authorization, connection)]).toEqual([want, want]);
  });

  test("reads what a connection repeats only once", () => {
    const read = createCredentialReader();
    expect(read("Bearer abc", connection)).toBe(read(["Bearer", "abc"].join(" "), connection));
  });

  test.each([
    { name: "another token of the same length", authorization: "Bearer abd", want: presented("abd") },
    { name: "a longer one", authorization: "Bearer abcd", want: presented("abcd") },
    { name: "a malformed one", authorization: "Bearer abc, Bearer abc", want: { kind: "malformed" } },
    { name: "none", authorization: null, want: { kind: "missing" } },
  ])("never takes $name on the same connection for the one before", ({ authorization, want }) => {
    const read = createCredentialReader();
    read("Bearer abc", connection);
    expect(read(authorization, connection)).toEqual(want);
    expect(read("Bearer abc", connection)).toEqual(presented("abc"));
  });

  test("remembers nothing for another connection", () => {
    const read = createCredentialReader();
    read("Bearer abc", connection);
    expect(read(null, {})).toEqual({ kind: "missing" });
    expect(read("Bearer abc", {})).toEqual(presented("abc"));
  });

  test("reads whatever comes as it would if it had read nothing before", () => {
    const around = fc.constantFrom("", " ", "\t", "\u00a0", ",", "=", "a", "é");
    const nearMiss = fc.tuple(around, around).map(([before, behind]) => `Bearer ${before}abc${behind}`);
    const part = fc.constantFrom("Bearer", "bearer", "Basic", " ", "abc", ".", "a".repeat(8 * 1024));
    const anything = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(fc.array(fc.oneof(nearMiss, anything, fc.constant(null))), (given) => {
        const read = createCredentialReader();
        for (const authorization of ["Bearer abc", ...given, ...given]) {
          expect(read(authorization, connection)).toEqual(createCredentialReader()(authorization, connection));
        }
      }),
    );
  });
});
