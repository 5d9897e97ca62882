// Formats a request as a command for a POSIX shell. Every variable part is quoted as one word, because the description
// and its names may come from another server.
import type { ApiRequest } from "./request.js";

/** A request with the messages for its RPC. */
export interface Call {
  readonly request: ApiRequest;
  readonly needsToken: boolean;
  readonly isStream: boolean;
  readonly baseUrl: string;
  readonly procedure: string | undefined;
  readonly messages: readonly string[];
}

/** Returns a curl command. */
export function writeCurl({ request: { method, url, headers, body }, needsToken, isStream }: Call): string {
  const parts = [`curl -i${isStream ? "N" : ""}`, `-X ${quoteWord(method)}`];
  if (needsToken) parts.push('-H "Authorization: Bearer $TOKEN"');
  parts.push(...headers.map((field) => `-H ${quote(field.join(": "))}`));
  if (body !== undefined) parts.push(`--data-binary ${quote(typeof body === "string" ? body : `@${body.name}`)}`);
  return [...parts, quote(url)].join(" \\\n  ");
}

/** Returns a grpcurl command. */
export function writeGrpcurl({ baseUrl, procedure = "", messages, needsToken }: Call): string {
  const { protocol, hostname, port } = new URL(baseUrl);
  const isPlain = protocol === "http:";
  return [
    isPlain ? "grpcurl -plaintext" : "grpcurl",
    ...(needsToken ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    `-d ${quote(messages.join("\n"))}`,
    `${quoteWord(`${hostname}:${port || (isPlain ? "80" : "443")}`)} ${quoteWord(procedure.slice(1))}`,
  ].join(" \\\n  ");
}

/** Returns a `buf curl` command. */
export function writeBuf({ baseUrl, procedure = "", messages, needsToken }: Call): string {
  return [
    "buf curl --protocol grpc",
    ...(baseUrl.startsWith("http:") ? ["--http2-prior-knowledge"] : []),
    ...(needsToken ? ["--reflect-header '*'", '-H "Authorization: Bearer $TOKEN"'] : []),
    `-d ${quote(messages.join("\n"))}`,
    quoteWord(`${baseUrl}${procedure}`),
  ].join(" \\\n  ");
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Writes a string as one shell word, in quotes only if necessary. */
function quoteWord(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : quote(text);
}
