/** The entry `@protoport/gateway/forward`, which exports what a proxy needs: calls whose messages stay bytes, and a gateway whose routes change. */
export {
  type CallSignal,
  compressedFlag,
  Envelope,
  envelopeBytes,
  envelopePrefixBytes,
  EnvelopeReader,
  fillEnvelope,
  type ForwardedMessage,
  isLargeEnvelope,
  LazyHeaders,
  type ProtocolName,
  readSingleEnvelope,
  toEnvelope,
  withoutTools,
  writeEnvelope,
} from "./protocols/index.ts";
export { brotli, gzip, zstd } from "./protocols/compression/index.ts";
export {
  type Caller,
  createFaultReporter,
  type FaultReporter,
  fieldFailure,
  type Forwarder,
  guardCallback,
  registerForwarder,
  type Reply,
  type Routes,
  type Server,
  toErrorDefault,
  toFault,
} from "./serve/index.ts";
export {
  assembleGateway,
  compileNodeRoutes,
  createNodeServer,
  type CurrentNodeServer,
  gatewayOptionNames,
  ignoredByListen,
} from "./create-gateway.ts";
