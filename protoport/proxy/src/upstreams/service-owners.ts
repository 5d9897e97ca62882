import { NamePatterns } from "@protoport/gateway/options";

/** The upstream options that {@link ServiceOwners} needs. */
interface ServicePatterns {
  /** Full service names. A name that ends in `*` is a prefix. Empty or `undefined` selects all services. */
  readonly services?: readonly string[] | undefined;
  readonly descriptors: unknown;
}

/** A reason why an upstream's patterns cannot be used. */
export interface PatternProblem {
  /** The upstream's index. */
  readonly at: number;
  readonly kind: "missing" | "shared";
  /** The pattern that an earlier upstream also has. Undefined if the upstream lacks patterns. */
  readonly pattern: string | undefined;
  /** The index of the earlier upstream with `pattern` or, if undefined, of another upstream with reflection. */
  readonly other: number;
}

/**
 * Returns the reasons why patterns do not determine each service's upstream. If several upstreams use reflection, each
 * needs patterns, because an upstream must not decide which calls it gets. Two upstreams must not have the same
 * pattern.
 */
export function findPatternProblems(upstreams: readonly ServicePatterns[]): readonly PatternProblem[] {
  const reflected = [...upstreams.entries()].filter(([, { descriptors }]) => descriptors === "reflection");
  const problems: PatternProblem[] = [];
  for (const [at, { services = [] }] of reflected) {
    const other = reflected.find(([index]) => index !== at)?.[0];
    if (other !== undefined && services.length === 0) problems.push({ at, kind: "missing", pattern: undefined, other });
  }
  const firsts = new Map<string, number>();
  for (const [at, { services = [] }] of upstreams.entries()) {
    for (const pattern of services) {
      const other = firsts.get(pattern) ?? at;
      if (other === at) firsts.set(pattern, at);
      else problems.push({ at, kind: "shared", pattern, other });
    }
  }
  return problems;
}

/** Finds the upstream to which a service belongs, by all upstreams' patterns. The most specific pattern applies. */
export class ServiceOwners {
  readonly #owners: NamePatterns<number>;
  /** The patterns except `*`. */
  readonly #named: NamePatterns<number>;
  readonly #hasPatterns: readonly boolean[];

  constructor(upstreams: readonly ServicePatterns[]) {
    this.#hasPatterns = upstreams.map(({ services = [] }) => services.length > 0);
    const patterns = upstreams.flatMap(({ services = [] }, at) => services.map((each) => [each, at] as const));
    this.#owners = new NamePatterns(patterns);
    this.#named = new NamePatterns(patterns.filter(([pattern]) => pattern !== "*"));
  }

  /** Returns the index of the upstream whose pattern matches, or `undefined` if no pattern matches. */
  ownerOf(name: string): number | undefined {
    return this.#owners.get(name);
  }

  /** Like {@link ownerOf}, but ignores the pattern `*`, which would match any first segment of a REST path. */
  namedOwnerOf(name: string): number | undefined {
    return this.#named.get(name);
  }

  /** Returns whether an upstream may serve a service. Services without a pattern go to upstreams without patterns. */
  mayServe(at: number, name: string): boolean {
    const owner = this.ownerOf(name);
    return owner === undefined ? this.#hasPatterns[at] === false && isApplicationService(name) : owner === at;
  }

  /** Returns the index of any other upstream with patterns, or `undefined`. */
  otherWithPatterns(at: number): number | undefined {
    const other = this.#hasPatterns.findIndex((has, index) => has && index !== at);
    return other < 0 ? undefined : other;
  }

  /** Returns the other upstream that owns an application's service, or `undefined` if there is no such upstream. */
  foreignOwnerOf(at: number, name: string): number | undefined {
    const owner = this.ownerOf(name);
    return owner === at || !isApplicationService(name) ? undefined : owner;
  }
}

/** Returns whether a service belongs to the application, rather than to the operation of gRPC servers. */
function isApplicationService(name: string): boolean {
  return !/^grpc\.(?:reflection|health|channelz)\./.test(name);
}
