import {
  type IssuedToken,
  issueToken,
  openTokenVerifier,
  type TokenRequest,
  type TokenVerifier,
} from "@protoport/auth";
import type { OperatorLog, ParseResult } from "@protoport/auth/inputs";
import { valueOrThrow } from "./configuration-error.ts";
import { type CredentialConfiguration, settingNamesOfSources, tokenSourcesOf } from "./credential-settings.ts";
import { plantScopeProblem } from "../service/index.ts";

/** The prefix of every plant store token. Secret scanners search for the prefix. */
const tokenPrefix = "plantstore_";

/**
 * Opens the verifier for all configured token sources, if any. The caller closes it.
 *
 * @throws ConfigurationError that names the setting, for each invalid file, and for an issuer that is not a URL
 */
export async function openVerifier(
  configuration: CredentialConfiguration,
  log: OperatorLog,
): Promise<TokenVerifier | undefined> {
  const sources = tokenSourcesOf(configuration);
  if (sources === undefined) return undefined;
  const names = settingNamesOfSources(configuration);
  return valueOrThrow(
    await openTokenVerifier({ ...sources, names, scopeProblem: plantScopeProblem, tokenPrefix }, log),
  );
}

/**
 * Creates a token for the plant store. If the request has a file, adds the token's line to the file.
 *
 * Returns all problems, and creates no token, if the request or the file is invalid. A scope that no RPC requires is
 * invalid too.
 */
export function issuePlantToken(
  request: Omit<TokenRequest, "prefix" | "scopeProblem">,
): Promise<ParseResult<IssuedToken>> {
  return issueToken({ ...request, prefix: tokenPrefix, scopeProblem: plantScopeProblem });
}
