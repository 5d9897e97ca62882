import { X509Certificate } from "node:crypto";
import { notParsed, parsed, type ParseResult, type WatchedFile, watchFile } from "@plantstore/auth/inputs";
import type { Log } from "@plantstore/telemetry/logs";
import type { PlantErrorCode } from "../service/index.ts";
import { valueOf } from "./configuration-error.ts";
import type { Configuration } from "./settings.ts";

/** A certificate chain and its key, both in PEM, checked to match. */
export interface KeyPair {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** From when on the certificate of the server is valid (RFC 5280 §4.1.2.5), in ms since 1970. */
  readonly notBeforeMs: number;
  /** When it expires, in ms since 1970: clients then refuse it. */
  readonly notAfterMs: number;
}

/** The certificate of a server, whose files are watched. */
export interface Certificate extends WatchedFile {
  /** The pair in use. */
  readonly current: KeyPair;
  /** Has `take` called with each new pair. */
  follow(take: (renewed: KeyPair) => void): void;
}

/** The largest file, in bytes: a chain of a few certificates has some kilobytes. */
const pemBytesMax = 1024 * 1024;

const dayMs = 86_400_000;

/** Renewals are usual 30 days ahead; where one has failed, this leaves two weeks to mend it. */
const expiryWarnedMs = 14 * dayMs;

/**
 * Opens the certificate of a server and watches its files, or returns `undefined` for a server without TLS. While only
 * one of the two files has been replaced they do not match, and the old pair stays. So does one that is valid in place of
 * one that has expired or is not valid yet; the latter is taken when its time has come.
 *
 * @throws ConfigurationError when the files cannot be read or do not match
 */
export async function openCertificate(
  { tlsCertFile, tlsKeyFile }: Pick<Configuration, "tlsCertFile" | "tlsKeyFile">,
  log: Pick<Log, "info" | "warn">,
): Promise<Certificate | undefined> {
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return undefined;
  let current: KeyPair = { cert: Buffer.of(), key: Buffer.of(), notBeforeMs: 0, notAfterMs: 0 };
  let onRenewed: ((renewed: KeyPair) => void) | undefined;
  const warn = (): void => {
    const leftMs = current.notAfterMs - Date.now();
    if (leftMs > expiryWarnedMs) return;
    const errorCode: PlantErrorCode = "ERR_CERTIFICATE_EXPIRES";
    const fields = { errorCode, certFile: tlsCertFile, notAfter: new Date(current.notAfterMs).toISOString() };
    log.warn(fields, leftMs > 0 ? "certificate expires soon" : "certificate has expired");
  };
  const watched = await watchFile({
    paths: [tlsCertFile, tlsKeyFile],
    what: "certificate",
    limitBytes: pemBytesMax,
    log,
    apply: (cert, key) => {
      const pair = checkPair(Buffer.from(cert), Buffer.from(key));
      if (pair.kind === "problems") return pair;
      const problem = validityProblem(pair.value);
      if (problem !== undefined && validityProblem(current) === undefined) return notParsed(problem);
      current = pair.value;
      onRenewed?.(current);
      warn();
      return parsed({ certFile: tlsCertFile });
    },
  });
  const files = valueOf(watched, "cannot use TLS_CERT_FILE and TLS_KEY_FILE: ");
  const daily = setInterval(warn, dayMs).unref();
  return {
    get current() {
      return current;
    },
    get lastReload() {
      return files.lastReload;
    },
    follow: (take) => void (onRenewed = take),
    reload: () => files.reload(),
    close: () => {
      clearInterval(daily);
      files.close();
    },
  };
}

/** Returns why clients refuse the certificate now, going by its dates; `undefined` if they accept it. */
function validityProblem({ notBeforeMs, notAfterMs }: KeyPair): string | undefined {
  const nowMs = Date.now();
  if (nowMs < notBeforeMs) return `the certificate is not valid before ${new Date(notBeforeMs).toISOString()}`;
  return nowMs > notAfterMs ? `the certificate expired at ${new Date(notAfterMs).toISOString()}` : undefined;
}

function checkPair(cert: Buffer, key: Buffer): ParseResult<KeyPair> {
  try {
    // Loaded only for TLS: it takes 10 ms of the start.
    process.getBuiltinModule("node:tls").createSecureContext({ cert, key });
    // Of a chain it is the first. Others may be left over from an earlier one, and expired.
    const { validFromDate, validToDate } = new X509Certificate(cert);
    return parsed({ cert, key, notBeforeMs: validFromDate.getTime(), notAfterMs: validToDate.getTime() });
  } catch (reason) {
    return notParsed(reason instanceof Error ? reason.message : String(reason));
  }
}
