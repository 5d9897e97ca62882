/**
 * How does node compress?
 *
 * The codings that a gateway on node offers. Kept apart from the protocols, which choose a coding by its name, so that
 * those run where there is no zlib.
 */
export { brotli, gzip, zstd } from "./compressions.ts";
