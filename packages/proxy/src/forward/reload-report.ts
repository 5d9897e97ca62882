/** A reload's result. */
export interface ReloadReport {
  /** Whether the descriptors in use have changed. Their RPCs may be the same. */
  readonly isChanged: boolean;
  /** The RPCs that are newly proxied, as `/package.Service/Method`. */
  readonly added: readonly string[];
  /** The RPCs that are no longer proxied. */
  readonly removed: readonly string[];
  /** Why some upstreams keep their previous descriptors. Empty if all new descriptors are in use. */
  readonly problems: readonly string[];
}

/** The last read of an upstream's descriptors. */
export interface DescriptorReload {
  /**
   * Why the descriptors could not be read or used, so that the previous ones stay in use, or `undefined` on success.
   */
  readonly problem: string | undefined;
  /** When the descriptors were last read successfully, in ms since 1970, or `undefined` if never. */
  readonly lastSuccessMs: number | undefined;
  /** The number of successful reads since the start. */
  readonly successes: number;
  /** The number of reads that failed, or whose descriptors could not be used. */
  readonly failures: number;
  /**
   * What the upstream offers and does not serve because it belongs to another upstream or to this process: services and
   * REST routes, such as `route DELETE /v1/orders/7 belongs to dns:orders:50051`.
   */
  readonly conflicts: readonly string[];
}
