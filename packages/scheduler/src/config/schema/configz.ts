/** The configuration as `/configz` shows it: since 1.36 as v1 has it, with all defaults. */
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';

/** `kubeconfig`: what a flag says, shown where the file says nothing. */
export function configz(complete: JsonObject, kubeconfig: string): JsonObject {
  const { kind = '', apiVersion = '', clientConnection, ...others } = complete;
  const connection = isObject(clientConnection) ? clientConnection : {};
  const shown = { ...connection, kubeconfig: connection['kubeconfig'] || kubeconfig };
  return { componentconfig: { kind, apiVersion, ...others, clientConnection: shown } };
}
