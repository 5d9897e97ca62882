import { once } from "node:events";
import type { IncomingMessage, RequestOptions } from "node:http";
import { explainSystemError } from "@protoport/auth/inputs";
import { problemsPath } from "./admin-server.ts";
import { type AdminAddress, socketPathOf, toConnectHost } from "./setting-types.ts";

/** A running server's readiness. */
interface ServerReadiness {
  /** The server's response for an operator, or the reason why there is no response. */
  readonly text: string;
  /** Whether a request was sent. A request requires an admin address with a fixed port or a socket path. */
  readonly isRequested: boolean;
  /** Whether the server responded that it is not ready. */
  readonly hasProblems: boolean;
}

// Timeout for a response, in milliseconds. A supervisor waits for the responses of all workers at the same time.
const responseTimeoutMs = 3_000;

/** Requests the problems from the server at an admin address. Never rejects. */
export async function fetchServerReadiness(at: AdminAddress | undefined): Promise<ServerReadiness> {
  const socketPath = at && socketPathOf(at.host);
  if (at === undefined || (at.port === 0 && socketPath === undefined)) {
    const reason = at === undefined ? "is not set" : "has no fixed port";
    const text = `no running server was asked, because PLANTSTORE_ADMIN_ADDRESS ${reason}`;
    return { text, isRequested: false, hasProblems: false };
  }
  const address = socketPath ?? toConnectAddress(at);
  const signal = AbortSignal.timeout(responseTimeoutMs);
  try {
    const problems: unknown = JSON.parse(
      await getText(new URL(problemsPath, `http://${socketPath === undefined ? address : "localhost"}`), {
        signal,
        agent: false,
        socketPath,
      }),
    );
    if (typeof problems !== "object" || problems === null) throw new SyntaxError("not a JSON object");
    const texts = Object.entries(problems).map(([part, problem]) => `${part}: ${String(problem)}`);
    const hasProblems = texts.length > 0;
    const state = hasProblems ? `is not ready: ${texts.join("; ")}` : "reports no problem";
    return { text: `the server at ${address} ${state}`, isRequested: true, hasProblems };
  } catch (reason) {
    const message = signal.aborted ? "the response timed out" : explainResponseError(reason);
    return { text: `no running server responds at ${address}: ${message}`, isRequested: true, hasProblems: false };
  }
}

function explainResponseError(reason: unknown): string {
  // The HTTP parser's errors have codes such as HPE_INVALID_CONSTANT.
  const isMalformed = reason instanceof Error && "code" in reason && String(reason.code).startsWith("HPE_");
  return isMalformed || reason instanceof SyntaxError ? "another program responds" : explainSystemError(reason);
}

/** Requests a URL. Returns the body if the status is 200. Uses node:http, because fetch refuses some ports. */
async function getText(url: URL, options: RequestOptions & { readonly signal: AbortSignal }): Promise<string> {
  // Imports node:http on demand, because loading node:http would slow down the start of `serve` by 1 %.
  const [{ get }, { text }] = await Promise.all([import("node:http"), import("node:stream/consumers")]);
  const [response]: IncomingMessage[] = await once(get(url, options), "response", { signal: options.signal });
  if (response?.statusCode !== 200) {
    response?.destroy();
    throw new Error(`HTTP status ${response?.statusCode}`);
  }
  return await text(response);
}

/** Returns a server's address for a connection, as `host:port`, with an IPv6 address in brackets. */
export function toConnectAddress({ host, port }: AdminAddress): string {
  const connected = toConnectHost(host);
  return `${connected.includes(":") ? `[${connected}]` : connected}:${port}`;
}
