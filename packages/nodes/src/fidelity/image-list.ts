/** The images that a real node tells of: they make up most of its Node object. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { hashOf } from '../chaos/fault.ts';

/** As many as kubelets tell (nodeStatusMaxImages). */
export const IMAGES_MAX = 50;

/** Fifty images with two names each, about 12 KB as JSON. */
export function imageList(): JsonObject[] {
  return Array.from({ length: IMAGES_MAX }, (_, index) => {
    const repository = `registry.k8s.io/workloads/team-${index % 7}/service-${index}`;
    const digest = Array.from({ length: 8 }, (_unused, part) =>
      hashOf(`${repository}/${part}`).toString(16).padStart(8, '0'),
    ).join('');
    const names = [`${repository}@sha256:${digest}`, `${repository}:v1.${index}.0`];
    return { names, sizeBytes: 20_000_000 + (hashOf(repository) % 500_000_000) };
  });
}
