import { NamePatterns } from "@protoport/gateway/options";

/** The upstream options that {@link ServiceOwners} needs. */
interface ServicePatterns {
  /** Full service names. A name that ends in `*` is a prefix. Empty or `undefined` selects all services. */
  readonly services?: readonly string[] | undefined;
  readonly descriptors?: unknown;
}

/** A reason why an upstream's patterns cannot be used. */
export interface PatternProblem {
  readonly at: number;
  /** The pattern that an earlier upstream also has. Undefined if the upstream lacks patterns. */
  readonly pattern: string | undefined;
  /** The index of the earlier upstream with `pattern` or, if undefined, of another upstream with reflection. */
  readonly other: number;
}

/**
 * Returns why patterns do not determine each service's upstream. If several upstreams use reflection, each needs
 * patterns, because an upstream must not decide which calls it gets. Two upstreams must not have the same pattern.
 */
export function findPatternProblems(upstreams: readonly ServicePatterns[]): readonly PatternProblem[] {
  const isReflected = (at: number): boolean => upstreams[at]?.descriptors === "reflection";
  const firsts = new Map<string, number>();
  return [...upstreams.entries()].flatMap(([at, { services = [] }]): readonly PatternProblem[] => {
    const other = upstreams.findIndex((_, index) => index !== at && isReflected(index));
    if (services.length === 0 && isReflected(at) && other >= 0) return [{ at, pattern: undefined, other }];
    return services.flatMap((pattern) => {
      const first = firsts.get(pattern) ?? at;
      firsts.set(pattern, first);
      return first === at ? [] : [{ at, pattern, other: first }];
    });
  });
}

/** Finds the upstream to which a service belongs, by all upstreams' patterns. The most specific pattern applies. */
export class ServiceOwners {
  readonly #owners: NamePatterns<number>;
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

  /**
   * Returns the upstream that serves a service which an upstream offers, or `undefined` if none serves it. Services
   * without a pattern belong to upstreams without patterns, except those for the operation of gRPC servers.
   */
  ownerOfOffered(at: number, name: string): number | undefined {
    const owner = this.ownerOf(name);
    if (owner === at) return at;
    if (/^grpc\.(?:reflection|health|channelz)\./.test(name)) return undefined;
    return owner ?? (this.#hasPatterns[at] === false ? at : undefined);
  }

  /**
   * Returns another upstream whose RPC paths may begin with a segment, or with any segment if `undefined`. A segment
   * without a dot is a service name only if a pattern other than `*` contains it.
   */
  otherOwnerOfPath(at: number, segment: string | undefined): number | undefined {
    const any = this.#hasPatterns.findIndex((has, index) => has && index !== at);
    if (segment === undefined) return any < 0 ? undefined : any;
    const owner = (/^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$/.test(segment) ? this.#owners : this.#named).get(segment);
    return owner === at ? undefined : owner;
  }
}
