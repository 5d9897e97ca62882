import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { readBearerToken, tokenLimitChars } from "../src/bearer-token.ts";

const longest = "a".repeat(tokenLimitChars);

describe("readBearerToken", () => {
  test.each([
    { name: "accepts a token", given: "Bearer abc.def", want: "abc.def" },
    { name: "accepts the scheme in any case (RFC 9110 §11.1)", given: "bEaReR abc", want: "abc" },
    { name: "accepts several spaces (1*SP)", given: "Bearer   abc", want: "abc" },
    { name: "accepts every character of b64token", given: "Bearer aZ09-._~+/==", want: "aZ09-._~+/==" },
    { name: "accepts a token of one character", given: "Bearer a", want: "a" },
    { name: "accepts a token of the maximum length", given: `Bearer ${longest}`, want: longest },
  ])("$name", ({ given, want }) => {
    expect(readBearerToken(given)).toEqual({ kind: "token", token: want });
  });

  test.each([
    { name: "returns missing without an Authorization header", given: null, want: "missing" },
    { name: "returns missing for an empty header", given: "", want: "missing" },
    { name: "returns other-scheme for Basic", given: "Basic dTpw", want: "other-scheme" },
    { name: "returns other-scheme for a token without a scheme", given: "abcdefghijklmnop", want: "other-scheme" },
    {
      name: 'returns other-scheme for the scheme "Bearertoken" with a token',
      given: "Bearertoken abc",
      want: "other-scheme",
    },
    { name: 'returns other-scheme for "Bearertoken" without a token', given: "Bearertoken", want: "other-scheme" },
    { name: "returns other-scheme for a scheme that ends in Bearer", given: "NotBearer abc", want: "other-scheme" },
    { name: 'returns other-scheme for the scheme "Bearer-2"', given: "Bearer-2 abc", want: "other-scheme" },
    { name: "rejects the scheme without a token", given: "Bearer", want: "malformed" },
    { name: "rejects the lower-case scheme without a token", given: "bearer", want: "malformed" },
    { name: "rejects spaces without a token", given: "Bearer   ", want: "malformed" },
    { name: "rejects a tab instead of the space", given: "Bearer\tabc", want: "malformed" },
    { name: "rejects a tab after the space", given: "Bearer \tabc", want: "malformed" },
    { name: "rejects a trailing space", given: "Bearer abc ", want: "malformed" },
    { name: "rejects a no-break space", given: "Bearer abc\u00a0", want: "malformed" },
    { name: "rejects a control character", given: "Bearer abc\u0001", want: "malformed" },
    { name: "rejects a line feed at the end", given: "Bearer abc\n", want: "malformed" },
    { name: "rejects a letter beyond ASCII", given: "Bearer äbc", want: "malformed" },
    { name: "rejects a second token", given: "Bearer abc def", want: "malformed" },
    { name: "rejects a header that was sent twice", given: "Bearer abc, Bearer def", want: "malformed" },
    { name: "rejects the same token twice, separated by a comma", given: "Bearer abc,Bearer abc", want: "malformed" },
    { name: "rejects a token of only padding", given: "Bearer ==", want: "malformed" },
    { name: "rejects padding in the middle", given: "Bearer a=b", want: "malformed" },
    { name: "rejects quotes", given: 'Bearer "abc"', want: "malformed" },
    { name: "rejects a parameter", given: "Bearer token=abc", want: "malformed" },
    { name: "rejects a token over the maximum length", given: `Bearer ${longest}a`, want: "malformed" },
    { name: "rejects a token of one megabyte", given: `Bearer ${"a".repeat(2 ** 20)}`, want: "malformed" },
  ])("$name", ({ given, want }) => {
    expect(readBearerToken(given)).toEqual({ kind: want });
  });

  test("accepts exactly the values that RFC 6750 §2.1 allows", () => {
    const codeUnit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));
    const mixed = fc.oneof(
      fc.string(),
      fc.string({ unit: codeUnit }).map((text) => `Bearer ${text}`),
      fc.base64String().map((text) => `bEARER  ${text}`),
    );
    fc.assert(
      fc.property(mixed, (authorization) => {
        const [scheme = "", ...rest] = authorization.split(" ");
        const token = rest.join(" ").replace(/^ */, "");
        const isBearer =
          scheme.toLowerCase() === "bearer" && /^[-A-Za-z0-9._~+/]+=*$/.test(token) && !token.includes("\n");
        const read = readBearerToken(authorization);
        expect(read.kind === "token" ? read.token : undefined).toBe(isBearer ? token : undefined);
      }),
    );
  });
});
