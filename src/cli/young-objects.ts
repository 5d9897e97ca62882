/**
 * Has V8 make objects young, however long others of their kind have lived, in all code that it optimises from now on.
 *
 * Calls that wait for one commit outlive a garbage collection together. Where a burst of them comes before V8 has
 * optimised the code that makes their parts, it decides that such parts live long, and makes them old from then on. They
 * are not collected until a full collection, and each that is dead keeps alive what it refers to: all of every call is
 * copied, 3.5 KB, and collections take 8 ms instead of one. In about every second process a delete on SQLite then cost 2
 * to 3 µs more, with 256 callers over REST.
 */
export function keepObjectsYoung(): void {
  // An import would load it for every command: 2 ms.
  process.getBuiltinModule("node:v8").setFlagsFromString("--no-allocation-site-pretenuring");
}
