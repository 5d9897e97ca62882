import type { ContextKey, ContextValues } from "@connectrpc/connect";

/** A call's context values. Connect's implementation keeps three closures in memory for each pending call. */
export class CallValues implements ContextValues {
  get<T>({ id, defaultValue }: ContextKey<T>): T {
    return id in this ? ((this as Stored<T>)[id] as T) : defaultValue;
  }

  set<T>({ id }: ContextKey<T>, value: T): this {
    (this as Stored<T>)[id] = value;
    return this;
  }

  delete({ id }: ContextKey<unknown>): this {
    delete (this as Stored<unknown>)[id];
    return this;
  }
}

type Stored<T> = Record<symbol, T>;
