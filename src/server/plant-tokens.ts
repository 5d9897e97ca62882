import {
  type IssuedToken,
  issueToken,
  openTokenVerifier,
  type TokenRequest,
  type TokenVerifier,
} from "@plantstore/auth";
import type { ParseResult } from "@plantstore/auth/inputs";
import type { Log } from "@plantstore/telemetry/logs";
import { valueOf } from "./configuration-error.ts";
import { type CredentialConfiguration, sourceSettings, tokenSourcesOf } from "./credential-settings.ts";
import { plantScopeProblem } from "../service/index.ts";

/** What the tokens of a plant store begin with, by which scanners for secrets find them. */
const tokenPrefix = "plantstore_";

/**
 * Opens the verifier of all configured sources of tokens, or returns `undefined` when there is none. The caller closes
 * it.
 *
 * @throws ConfigurationError naming the setting of each file with wrong content, and of an issuer that is not a URL
 */
export async function openVerifier(
  configuration: CredentialConfiguration,
  log: Log,
): Promise<TokenVerifier | undefined> {
  const sources = tokenSourcesOf(configuration);
  if (sources === undefined) return undefined;
  const names = sourceSettings(configuration);
  return valueOf(await openTokenVerifier({ ...sources, names, scopeProblem: plantScopeProblem, tokenPrefix }, log));
}

/**
 * Creates a token for the plant store and, if a file is given, adds its line there.
 *
 * Returns everything that is wrong with the request or the file instead; then no token was created. A scope that no RPC
 * requires is wrong too.
 */
export function issuePlantToken(
  request: Omit<TokenRequest, "prefix" | "scopeProblem">,
): Promise<ParseResult<IssuedToken>> {
  return issueToken({ ...request, prefix: tokenPrefix, scopeProblem: plantScopeProblem });
}
