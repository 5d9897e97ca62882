import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { readBearerToken, tokenLimitChars } from "../src/bearer-token.ts";

const longest = "a".repeat(tokenLimitChars);

describe("readBearerToken", () => {
  test.each([
    { name: "takes a token", given: "Bearer abc.def", want: "abc.def" },
    { name: "folds the case of the scheme (RFC 9110 §11.1)", given: "bEaReR abc", want: "abc" },
    { name: "takes more than one space (1*SP)", given: "Bearer   abc", want: "abc" },
    { name: "takes every character of b64token", given: "Bearer aZ09-._~+/==", want: "aZ09-._~+/==" },
    { name: "takes a token of one character: its worth is not judged here", given: "Bearer a", want: "a" },
    { name: "takes the longest token", given: `Bearer ${longest}`, want: longest },
  ])("$name", ({ given, want }) => {
    expect(readBearerToken(given)).toEqual({ kind: "token", token: want });
  });

  test.each([
    { name: "has no credential without the header", given: null, want: "missing" },
    { name: "has no credential in an empty header", given: "", want: "missing" },
    { name: "knows Basic as another scheme", given: "Basic dTpw", want: "other-scheme" },
    { name: "knows a bare token as another scheme", given: "abcdefghijklmnop", want: "other-scheme" },
    { name: "knows Bearertoken as another scheme", given: "Bearertoken abc", want: "other-scheme" },
    { name: "knows Bearertoken alone as another scheme", given: "Bearertoken", want: "other-scheme" },
    { name: "knows a scheme that ends like it as another scheme", given: "NotBearer abc", want: "other-scheme" },
    { name: "knows Bearer-2 as another scheme", given: "Bearer-2 abc", want: "other-scheme" },
    { name: "finds no token after the scheme alone", given: "Bearer", want: "malformed" },
    { name: "finds no token after the scheme in lower case", given: "bearer", want: "malformed" },
    { name: "finds no token in spaces", given: "Bearer   ", want: "malformed" },
    { name: "takes no tab for the space", given: "Bearer\tabc", want: "malformed" },
    { name: "takes no tab after the space", given: "Bearer \tabc", want: "malformed" },
    { name: "takes no trailing space", given: "Bearer abc ", want: "malformed" },
    { name: "takes no no-break space", given: "Bearer abc\u00a0", want: "malformed" },
    { name: "takes no control character", given: "Bearer abc\u0001", want: "malformed" },
    { name: "takes no line feed at the end", given: "Bearer abc\n", want: "malformed" },
    { name: "takes no letter beyond ASCII", given: "Bearer äbc", want: "malformed" },
    { name: "takes no second token", given: "Bearer abc def", want: "malformed" },
    { name: "takes no header that was sent twice", given: "Bearer abc, Bearer def", want: "malformed" },
    { name: "takes no list of the same token", given: "Bearer abc,Bearer abc", want: "malformed" },
    { name: "takes no padding alone", given: "Bearer ==", want: "malformed" },
    { name: "takes no padding in the middle", given: "Bearer a=b", want: "malformed" },
    { name: "takes no quotes", given: 'Bearer "abc"', want: "malformed" },
    { name: "takes no parameter", given: "Bearer token=abc", want: "malformed" },
    { name: "takes no token over the limit", given: `Bearer ${longest}a`, want: "malformed" },
    { name: "takes no token of a megabyte", given: `Bearer ${"a".repeat(2 ** 20)}`, want: "malformed" },
  ])("$name", ({ given, want }) => {
    expect(readBearerToken(given)).toEqual({ kind: want });
  });

  test("finds a token only where RFC 6750 §2.1 has one, whatever it is given", () => {
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
