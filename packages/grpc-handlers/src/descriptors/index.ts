/** The descriptors for the services that handlers implement, by which the gateway reads and writes JSON. */
export { type DescriptorSource, findMethod, findService, readServices } from "./find-service.ts";
