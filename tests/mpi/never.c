/* A program that never calls MPI. */
#include <stdio.h>

int main(void) {
    puts("nothing");
    return 0;
}
