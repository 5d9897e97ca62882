import { type IssuedToken, issueToken, type TokenRequest } from "../../operators/auth/index.ts";
import type { ParseResult } from "../../operators/inputs/index.ts";
import { plantScopeProblem } from "./rpc-policy.ts";

/**
 * Creates a token for the plant store and, if a file is given, adds its line there.
 *
 * Returns everything that is wrong with the request or the file instead; then no token was created. A scope that no RPC
 * requires is wrong too.
 */
export function issuePlantToken(request: Omit<TokenRequest, "scopeProblem">): Promise<ParseResult<IssuedToken>> {
  return issueToken({ ...request, scopeProblem: plantScopeProblem });
}
