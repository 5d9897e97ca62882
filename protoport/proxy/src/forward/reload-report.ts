/** A reload's result. */
export interface ReloadReport {
  /** Whether the descriptors in use have changed. The RPCs may be unchanged. */
  readonly isChanged: boolean;
  /** The RPCs that are newly proxied, as `/package.Service/Method`. */
  readonly added: readonly string[];
  /** The RPCs that are no longer proxied. */
  readonly removed: readonly string[];
  /** Reasons for which some upstreams keep their previous descriptors. Empty if all new descriptors are in use. */
  readonly problems: readonly string[];
}

/** The result from the last reload for an upstream's descriptors. */
export interface DescriptorReload {
  /**
   * Why the descriptors could not be read or used, or `undefined` on success. After a failure, the previous descriptors
   * stay in use.
   */
  readonly problem: string | undefined;
  /** When the last successful read finished, in ms since 1970, or `undefined` before the first success. */
  readonly lastSuccessMs: number | undefined;
  /** How many reads have succeeded since the start. */
  readonly successes: number;
  /** How many reads have failed, or returned descriptors that could not be used. */
  readonly failures: number;
  /**
   * Services and REST routes that the upstream offers, but that belong to another upstream or to this process, such as
   * `route DELETE /v1/orders/7 of shop.v1.Shop.Delete belongs to dns:orders:50051`.
   */
  readonly conflicts: readonly string[];
  /** The services that the upstream serves with its current descriptors, by full name. */
  readonly services: readonly string[];
}
