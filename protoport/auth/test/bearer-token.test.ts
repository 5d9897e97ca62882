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
  ])("$name", ({ given, want }) => expect(readBearerToken(given)).toEqual({ kind: "token", token: want }));

  test.each([
    ["returns missing without an Authorization header", null, "missing"],
    ["returns missing for an empty header", "", "missing"],
    ["returns other-scheme for Basic", "Basic dTpw", "other-scheme"],
    ["returns other-scheme for a token without a scheme", "abcdefghijklmnop", "other-scheme"],
    ['returns other-scheme for the scheme "Bearertoken" with a token', "Bearertoken abc", "other-scheme"],
    ['returns other-scheme for "Bearertoken" without a token', "Bearertoken", "other-scheme"],
    ["returns other-scheme for a scheme that ends in Bearer", "NotBearer abc", "other-scheme"],
    ['returns other-scheme for the scheme "Bearer-2"', "Bearer-2 abc", "other-scheme"],
    ["rejects the scheme without a token", "Bearer", "malformed"],
    ["rejects the lower-case scheme without a token", "bearer", "malformed"],
    ["rejects spaces without a token", "Bearer   ", "malformed"],
    ["rejects a tab instead of the space", "Bearer\tabc", "malformed"],
    ["rejects a tab after the space", "Bearer \tabc", "malformed"],
    ["rejects a trailing space", "Bearer abc ", "malformed"],
    ["rejects a no-break space", "Bearer abc\u00a0", "malformed"],
    ["rejects a control character", "Bearer abc\u0001", "malformed"],
    ["rejects a line feed at the end", "Bearer abc\n", "malformed"],
    ["rejects a letter beyond ASCII", "Bearer äbc", "malformed"],
    ["rejects a second token", "Bearer abc def", "malformed"],
    ["rejects a header that was sent twice", "Bearer abc, Bearer def", "malformed"],
    ["rejects the same token twice, separated by a comma", "Bearer abc,Bearer abc", "malformed"],
    ["rejects a token of only padding", "Bearer ==", "malformed"],
    ["rejects padding in the middle", "Bearer a=b", "malformed"],
    ["rejects quotes", 'Bearer "abc"', "malformed"],
    ["rejects a parameter", "Bearer token=abc", "malformed"],
    ["rejects a token over the maximum length", `Bearer ${longest}a`, "malformed"],
    ["rejects a token of one megabyte", `Bearer ${"a".repeat(2 ** 20)}`, "malformed"],
  ])("%s", (_name, given, want) => expect(readBearerToken(given)).toEqual({ kind: want }));

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
