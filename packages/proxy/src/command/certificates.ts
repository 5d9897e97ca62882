import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { InputProblem } from "../check/index.ts";
import { messageOf } from "@plantstore/gateway/internal/errors";
import type { CertificateFiles, CertificatePair, ProxySettings } from "./proxy-settings.ts";

/** The certificate that is served, until a reload replaces it. */
export class ServedCertificate {
  readonly path: string;
  /** When what the files have was last put in use, in ms since 1970. */
  lastSuccessMs: number = Date.now();
  current: CertificatePair;
  readonly #files: CertificateFiles;
  /** Why the last reload has left the previous certificate in use. */
  #refusal: string | undefined;

  /** @throws InputProblem for files that cannot be read */
  constructor(files: CertificateFiles) {
    this.path = files.path;
    this.current = files.read();
    this.#files = files;
  }

  /** Why the last reload has left the previous certificate in use, or why clients refuse the one in use now. */
  get problem(): string | undefined {
    if (this.#refusal !== undefined) return `kept the previous certificate: ${this.#refusal}`;
    // Computed at each call: a certificate expires while it is in use.
    const invalid = validityProblem(leafOf(this.current));
    return invalid && `the certificate in use ${invalid}`;
  }

  /**
   * Reads the files again. What does not match, has expired or is not valid yet does not replace what is valid.
   *
   * @returns whether they are in use
   */
  reload(): boolean {
    try {
      const pair = this.#files.read();
      createSecureContext(pair);
      const invalid = validityProblem(leafOf(pair));
      if (invalid !== undefined && validityProblem(leafOf(this.current)) === undefined) {
        throw new Error(`the certificate ${invalid}`);
      }
      this.current = pair;
      this.#refusal = undefined;
      this.lastSuccessMs = Date.now();
      return true;
    } catch (error) {
      this.#refusal = messageOf(error);
      return false;
    }
  }
}

/** Returns the first certificate of a chain: the one that its key belongs to. */
function leafOf({ cert }: CertificatePair): X509Certificate {
  return new X509Certificate(cert);
}

/**
 * Returns why clients refuse a certificate now, going by its dates (RFC 5280 §4.1.2.5); `undefined` if they accept it.
 * The text continues a sentence whose subject is the certificate.
 */
function validityProblem({ validFromDate, validToDate }: X509Certificate): string | undefined {
  const nowMs = Date.now();
  if (nowMs < validFromDate.getTime()) return `is not valid before ${validFromDate.toISOString()}`;
  return nowMs > validToDate.getTime() ? `expired at ${validToDate.toISOString()}` : undefined;
}

/**
 * Checks the certificates of settings.
 *
 * @throws InputProblem if certificate and key do not match, cannot be parsed, have expired or are not valid yet
 */
export function requireCertificates({ tls: files, upstreamTls }: ProxySettings): void {
  const tls = files?.read();
  try {
    createSecureContext(tls);
  } catch (error) {
    throw new InputProblem(`--tls-cert and --tls-key cannot be used: ${messageOf(error)}`);
  }
  // Of a chain the first one counts, of authorities any.
  requireValid("--tls-cert", certificatesOf("--tls-cert", tls?.cert).slice(0, 1));
  requireValid("--upstream-cert", certificatesOf("--upstream-cert", upstreamTls?.cert).slice(0, 1));
  requireValid("--upstream-ca", certificatesOf("--upstream-ca", upstreamTls?.ca));
}

// Of authorities, node takes those before the first one that it cannot read, without a word.
function certificatesOf(option: string, pem: unknown): readonly X509Certificate[] {
  const texts = String(pem).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return texts.map((text) => new X509Certificate(text));
  } catch (error) {
    throw new InputProblem(`a certificate of ${option} cannot be read: ${messageOf(error)}`);
  }
}

/** @throws InputProblem if none of the certificates is valid now; without any, there is nothing to check */
function requireValid(option: string, certificates: readonly X509Certificate[]): void {
  const problems = certificates.map(validityProblem);
  if (problems.length === 0 || problems.includes(undefined)) return;
  throw new InputProblem(`the certificate of ${option} ${problems[0]}`);
}
