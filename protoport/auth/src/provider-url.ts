import { isLoopback, withProblems, parsed, type ParseResult } from "./inputs/index.ts";

/**
 * Parses an identity provider's URL, which must be `https`, because anyone who can modify a key set can forge tokens.
 * Plain `http` is allowed for loopback addresses, such as for a sidecar or in a test. A user name or password is
 * rejected, because URLs are logged.
 */
export function parseProviderUrl(text: string): ParseResult<URL> {
  const url = URL.parse(text);
  if (url === null) return withProblems(`${JSON.stringify(text)} is not a valid URL`);
  if (url.username !== "" || url.password !== "")
    return withProblems("a provider URL must not contain a user name or password");
  const isSafe =
    url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname.replaceAll(/[[\]]/g, "")));
  return isSafe ? parsed(url) : withProblems(`${text} must use https, or http to a loopback address`);
}
