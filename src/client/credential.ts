// Matches b64token in RFC 6750 §2.1. Other tokens are refused, because errors from libraries would contain the token.
const bearerToken = /^[A-Za-z0-9\-._~+/]+=*$/;

/**
 * Returns the `authorization` field for a token. If `token` is a function, returns a function that resolves to the
 * field for a new token, or rejects if the new token is invalid.
 *
 * @throws Error if the token is invalid. The error message does not contain the token
 */
export function credentialsOf(token: string | (() => string | Promise<string>)): string | (() => Promise<string>) {
  return typeof token === "string" ? credentialOf(token) : async () => credentialOf(await token());
}

function credentialOf(token: string): string {
  if (token === "") throw new Error("the token is empty");
  if (bearerToken.test(token)) return `Bearer ${token}`;
  throw new Error("the token has a character that RFC 6750 §2.1 does not allow; check for a line break at its end");
}
