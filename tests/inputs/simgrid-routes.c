/* Prints the links of SimGrid's route between each two hosts of a platform: the hosts, then the links. Recorded in
   simgrid-torus-routes.txt by SimGrid 3.32:
   gcc simgrid-routes.c $(pkg-config --cflags --libs simgrid) && ./a.out simgrid-torus.xml | sed s/c_link_from_//g */
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/link.h>
#include <stdio.h>
#include <xbt/dynar.h>

int main(int argc, char *argv[]) {
  simgrid_init(&argc, argv);
  simgrid_load_platform(argv[1]);
  sg_host_t *hosts = sg_host_list();
  size_t count = sg_host_count();
  for (size_t pair = 0; pair < count * count; pair++) {
    sg_host_t from = hosts[pair / count], to = hosts[pair % count];
    if (from == to)
      continue;
    printf("%s %s", sg_host_get_name(from), sg_host_get_name(to));
    xbt_dynar_t links = xbt_dynar_new(sizeof(sg_link_t), NULL);
    sg_host_get_route(from, to, links);
    unsigned int at;
    sg_link_t link;
    xbt_dynar_foreach(links, at, link) printf(" %s", sg_link_get_name(link));
    printf("\n");
  }
}
