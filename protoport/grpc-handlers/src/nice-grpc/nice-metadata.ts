import { Metadata } from "@grpc/grpc-js";

/** A metadata value, which is binary if the key ends with `-bin`. */
type NiceValue = string | Uint8Array;

/** Metadata with the nice-grpc interface. Several strings with the same key are joined by ", ". */
export class NiceMetadata {
  /** The metadata for grpc-js. */
  readonly grpcJs: Metadata;

  constructor(metadata: Metadata = new Metadata()) {
    this.grpcJs = metadata;
  }

  /** @throws Error for a key or a value that gRPC does not allow, like the other methods that add values */
  set(key: string, value: NiceValue | readonly NiceValue[]): this {
    this.grpcJs.remove(key);
    for (const each of typeof value === "string" || value instanceof Uint8Array ? [value] : value) {
      this.append(key, each);
    }
    return this;
  }

  append(key: string, value: NiceValue): this {
    this.grpcJs.add(key, typeof value === "string" ? value : Buffer.from(value));
    return this;
  }

  delete(key: string): void {
    this.grpcJs.remove(key);
  }

  get(key: string): NiceValue | undefined {
    return this.getAll(key)[0];
  }

  getAll(key: string): NiceValue[] {
    const values = this.grpcJs.get(key);
    return values.length < 2 || key.toLowerCase().endsWith("-bin") ? values : [values.join(", ")];
  }

  has(key: string): boolean {
    return this.getAll(key).length > 0;
  }

  *[Symbol.iterator](): IterableIterator<[string, NiceValue[]]> {
    for (const key of Object.keys(this.grpcJs.getMap())) yield [key, this.getAll(key)];
  }
}
