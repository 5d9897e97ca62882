import { X509Certificate } from "node:crypto";

/** Maximum size of a PEM file, in bytes. A system's bundle of CA certificates is smaller than 1 MiB. */
export const maxPemBytes: number = 1024 * 1024;

/** The period in which a certificate is valid (RFC 5280 §4.1.2.5). */
export type CertificateValidity = Pick<X509Certificate, "validFromDate" | "validToDate">;

/** A PEM certificate chain and its private key. The period is that of the first certificate. */
export interface KeyPair extends CertificateValidity {
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads a certificate chain and its private key.
 *
 * @param current - the certificate in use, if any. While it is valid, no expired or future certificate replaces it
 * @throws Error with the reason for an operator if the pair is unusable
 */
export function readKeyPair(cert: string, key: string, current?: CertificateValidity): KeyPair {
  try {
    // Loads node:tls on demand, because loading takes 10 ms. Passes buffers, because node:tls ignores an empty string.
    process.getBuiltinModule("node:tls").createSecureContext({ cert: Buffer.from(cert), key: Buffer.from(key) });
  } catch (cause) {
    throw new Error(explainPairError(cause), { cause });
  }
  // Reads only the first certificate. The rest of the chain may belong to an older certificate, and have expired.
  const { validFromDate, validToDate } = new X509Certificate(cert);
  const pair = { cert, key, validFromDate, validToDate };
  const problem = validityProblem(pair);
  if (problem !== undefined && current !== undefined && validityProblem(current) === undefined)
    throw new Error(`the certificate ${problem}`);
  return pair;
}

function explainPairError(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (code === "ERR_OSSL_X509_KEY_VALUES_MISMATCH") return "the private key does not belong to the certificate";
  const message = cause instanceof Error ? cause.message : String(cause);
  if (!/^ERR_OSSL_(PEM|UNSUPPORTED)/.test(code)) return message;
  return `the files must be a PEM certificate and its PEM private key, in this order (${message})`;
}

/**
 * Returns all certificates in a PEM text, which may also contain keys. node:tls would ignore a malformed authority and
 * all authorities after it.
 *
 * @throws Error if a certificate is malformed, or a block has no end, for example while another program writes the file
 */
export function parseCertificates(pem: string): readonly X509Certificate[] {
  const blocks = pem.split(/(?=-----BEGIN )/).filter((block) => block.startsWith("-----BEGIN "));
  if (!blocks.every((block) => /-----END [A-Z0-9 ]+-----/.test(block))) throw new Error("a PEM block has no end");
  return blocks.flatMap((block) =>
    /^-----BEGIN (?:X509 )?CERTIFICATE-----/.test(block) ? [new X509Certificate(block)] : [],
  );
}

/**
 * Returns why a certificate is not valid now, or `undefined` if it is valid. The text is a phrase that follows "the
 * certificate".
 */
export function validityProblem({ validFromDate, validToDate }: CertificateValidity): string | undefined {
  const nowMs = Date.now();
  if (nowMs < validFromDate.getTime()) return `is not valid before ${validFromDate.toISOString()}`;
  return nowMs > validToDate.getTime() ? `expired at ${validToDate.toISOString()}` : undefined;
}
