/**
 * Finds the descriptors for the services that handlers implement. The gateway reads and writes JSON with these
 * descriptors.
 */
export { type HandlerDescriptors, findMethod, findService, findServices, readServices } from "./find-service.ts";
