import { type IssuedToken, issueToken, type ParseResult, type TokenRequest } from "../auth/index.ts";
import { plantScopeProblem } from "./rpc-policy.ts";

/**
 * Creates a token for the plant store, and if a file is given, adds its line there.
 *
 * Returns what is wrong with the request, also with a scope that no RPC demands, or with the file; then no token was
 * created.
 */
export function issuePlantToken(request: Omit<TokenRequest, "scopeProblem">): Promise<ParseResult<IssuedToken>> {
  return issueToken({ ...request, scopeProblem: plantScopeProblem });
}
