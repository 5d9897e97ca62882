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

/** How an upstream's descriptors were last read. */
export interface DescriptorReload {
  /**
   * Why the descriptors could not be read or used, so that the previous ones stay in use, or `undefined` on success.
   */
  readonly problem: string | undefined;
  /** When the descriptors were last read successfully, in ms since 1970, or `undefined` if never. */
  readonly lastSuccessMs: number | undefined;
  /** How many reads have succeeded since the start. */
  readonly successes: number;
  /** How many reads have failed, or returned descriptors that could not be used. */
  readonly failures: number;
  /**
   * What the upstream offers and does not serve because it belongs to another upstream or to this process: services and
   * REST routes, such as `route DELETE /v1/orders/7 belongs to dns:orders:50051`.
   */
  readonly conflicts: readonly string[];
  /** The full names of the services that the upstream serves by its current descriptors. */
  readonly services: readonly string[];
}
